"""The table of programs."""

import pytest

from appliance.core.program_table import PROGRAMS
from appliance.model.paths import Paths

pytestmark = pytest.mark.pure


def test_the_trace_of_a_program_is_its_lock():
    """A start looks for leftovers of these two only where the program has run in the runtime directory."""
    paths = Paths()
    traces = {each.name: each.trace(paths) for each in PROGRAMS if each.trace}
    assert traces == {"linger": paths.linger_lock, "announce": paths.announce_lock}
    assert all(each.leftovers for each in PROGRAMS if each.trace)
