"""Every directive of the tables: it is understood, or says why not, and never nothing at all."""

import pytest
from support.translation.haproxy_files import TIMES, backend, frontend, read

from appliance.translation.haproxy.directives.global_table import GLOBAL
from appliance.translation.haproxy.directives.proxy_table import PROXY
from appliance.translation.haproxy.directives.sections import OTHERS
from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("name", sorted(PROXY))
@pytest.mark.parametrize("kind", ["defaults", "frontend f", "backend b", "listen l"])
def test_a_directive_of_a_section(name: str, kind: str):
    """Alone or with a word that means nothing, it has outcomes; what is not kept has its reason."""
    for line in (name, f"{name} bogus", f"no {name}"):
        found = read(f"{kind}\n  {line}\n")
        told = [each for each in found.found.lines if each.place.line == 2]
        assert told
        assert all((each.reason is None) is (each.outcome is Outcome.KEPT) for each in told)


@pytest.mark.parametrize("name", sorted(GLOBAL))
def test_a_directive_of_the_process(name: str):
    """The same for the section global."""
    found = read(f"global\n  {name} bogus\n")
    assert [each.place.line for each in found.found.lines] == [1, 2]


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_other_sections(name: str):
    """Each of their lines has the same reason."""
    outcome, reason = OTHERS[name]
    found = read(f"{name} x\n  anything at all\n")
    assert [(each.outcome, each.reason) for each in found.found.lines] == [(outcome, reason)] * 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bakend b\n", "1:1: `bakend` comes before the first section: did you mean `backend`?"),
        ("qqqqqq\n", "1:1: `qqqqqq` comes before the first section"),
        ("defaults\n  blance source\n", "2:3: `blance` is unknown: did you mean `balance`?"),
        (
            "defaults\n  timeout clent 1m\n",
            "2:11: `timeout clent` is unknown: did you mean `timeout client`?",
        ),
        ("defaults\n  option\n", "2:3: `option` is unknown: did you mean `option nolinger`?"),
        ("global\n  maxcon 1\n", "2:3: `maxcon` is unknown: did you mean `maxconn`?"),
        ("global\n  qqqqqqqqqqqq\n", "2:3: `qqqqqqqqqqqq` is unknown"),
        ("backend b\n  no balance source\n", "2:6: `no` cannot precede `balance`"),
    ],
)
def test_unknown_words(text: str, expected: str):
    """The nearest known word is proposed."""
    assert read(text).refused[0].startswith(expected[:40])
    assert read(text).refused == [expected] or "option" in text


def test_hints_have_a_limit():
    """To compare words takes time, and a file may have nothing but unknown ones."""
    found = read("global\n" + "  maxcon 1\n" * 300)
    assert sum("did you mean" in each for each in found.refused) == 200


def test_where_a_directive_means_nothing():
    """HAProxy has no use for it there, and neither have we."""
    found = backend("timeout client 1s", "bind *:1")
    assert found.line("timeout client 1s").reason == "`timeout client` has no effect in a `backend`"
    assert found.line("bind *:1").outcome is Outcome.IGNORED
    assert frontend("balance source").line("balance").outcome is Outcome.IGNORED


def test_a_setting_that_nothing_uses():
    """It is ignored: the sections say their own."""
    found = read(f"{TIMES}  retries 9\nlisten l\n  retries 2\n  bind *:1\n  server s 10.0.0.1:1\n")
    assert [each.outcome for each in found.lines("retries")] == [Outcome.IGNORED, Outcome.CHANGED]
    assert found.config.defaults.retries == 2


def test_an_old_word():
    """HAProxy 1 took it without `option`, and it is no slip of `dispatch`."""
    assert backend("redispatch", "retries 3").outcome("redispatch") is Outcome.KEPT
