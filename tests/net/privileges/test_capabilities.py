"""Which command lines have capabilities, and in whose environment."""

import os
import sys

import pytest

from appliance.model.capability import Capability
from appliance.net.privileges.capabilities import used_by
from appliance.net.process.python import command
from appliance.supervisor.supervisord_options import starts_as_ours

pytestmark = pytest.mark.pure

_MODULE = "appliance.programs.reload"


def test_our_own_program_has_what_it_uses():
    """With its arguments, as supervisord starts it."""
    share = frozenset({Capability.CAP_DAC_READ_SEARCH, Capability.CAP_NET_BIND_SERVICE})
    assert used_by(command(_MODULE)) == used_by(command(_MODULE, "api")) == share


@pytest.mark.promise("rights", "a command line like one of ours")
@pytest.mark.parametrize(
    "words",
    [
        ["/srv/evil", "-Ps", "-m", _MODULE],
        ["/srv/bin/python", "-Ps", "-m", _MODULE],
        [sys.executable, "-m", _MODULE],
        [sys.executable, "-P", "-m", _MODULE],
        [sys.executable, "-Ps", "-c", "pass", "-m", _MODULE],
        [sys.executable, "-Ps", "/srv/evil.py", "-m", _MODULE],
        [sys.executable, "-Ps", "-m", "evil"],
        [sys.executable, "-Ps", "-m"],
        [],
    ],
)
def test_what_only_looks_like_one_has_nothing(words: list[str]):
    """Another interpreter, a link to ours beside which a pyvenv.cfg may lie, other options, other modules."""
    assert used_by(words) == frozenset()


@pytest.mark.promise("rights", "a command line like one of ours")
def test_our_own_program_starts_in_our_environment():
    """With the variables that supervisord adds, and no others; and by the name that it says."""
    words = command(_MODULE)
    assert starts_as_ours(words[0], words, dict(os.environ))
    assert starts_as_ours(words[0], words, {**os.environ, "SUPERVISOR_PROCESS_NAME": "reload"})
    assert not starts_as_ours("/srv/evil", words, dict(os.environ))
    for name in ("PYTHONPATH", "LD_PRELOAD", "PYTHONHOME", "ANYTHING"):
        assert not starts_as_ours(words[0], words, {**os.environ, name: "/srv/evil"})
