"""Whatever the API shows, a pool keeps servers that serve."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.discovery.removal_guard import Decision, Hold, decide
from appliance.model.snapshot.found_servers import FoundServer

pytestmark = pytest.mark.pure

NAMES = "abcdef"


def servers(names: str, network: str = "10.0.0") -> tuple[FoundServer, ...]:
    """Return a server for each letter."""
    return tuple(FoundServer(name=each, host=f"{network}.{NAMES.index(each)}") for each in names)


def decided(current: str, shown: str, *, up: str, gone: str = "") -> tuple[str, str, Hold | None]:
    """Return the names that there are from now on, those that are held, and why."""
    decision = decide(servers(current), servers(shown), up=set(up), gone=set(gone))
    return "".join(each.name for each in decision.servers), "".join(decision.held), decision.hold


def test_what_is_new_comes_and_what_vanishes_goes():
    """One of three may go without further ado, and so may one of two."""
    assert decided("", "abc", up="") == ("abc", "", None)
    assert decided("abc", "bcd", up="abc") == ("bcd", "", None)
    assert decided("ab", "a", up="ab") == ("a", "", None)


def test_an_empty_list_changes_nothing():
    """Not even where the checks say that all are down."""
    assert decided("abc", "", up="abc") == ("abc", "abc", Hold.EMPTY)
    assert decided("abc", "", up="", gone="abc") == ("abc", "abc", Hold.EMPTY)


def test_the_last_that_serve_stay():
    """Until another one serves; that somebody else calls them gone is not enough, checks count."""
    assert decided("a", "b", up="a") == ("ab", "a", Hold.LAST)
    assert decided("a", "b", up="a", gone="a") == ("ab", "a", Hold.LAST)
    assert decided("ab", "b", up="ab") == ("b", "", None)
    assert decided("a", "b", up="", gone="a") == ("b", "", None)


def test_more_than_half_at_once_needs_somebody_to_agree():
    """Who is confirmed to be gone goes, the others stay."""
    assert decided("abc", "c", up="abc") == ("abc", "ab", Hold.HALF)
    assert decided("abc", "c", up="abc", gone="a") == ("c", "", None)
    assert decided("abc", "c", up="c") == ("c", "", None)
    assert decided("abcde", "e", up="abcde", gone="a") == ("bcde", "bcd", Hold.HALF)
    # Masters of another history: the new ones have to serve first.
    assert decided("abc", "def", up="abc")[0] == "abcdef"
    assert decided("abcdef", "def", up="abcdef")[0] == "def"


def test_another_address_is_another_machine():
    """It is changed as one that vanishes and one that comes."""
    moved = decide(servers("ab"), (*servers("a", "10.9.9"), *servers("b")), up={"a", "b"}, gone=set())
    assert [each.host for each in moved.servers] == ["10.9.9.0", "10.0.0.1"]
    alone = decide(servers("a"), servers("a", "10.9.9"), up={"a"}, gone=set())
    assert alone == Decision(servers=servers("a"), held=("a",), hold=Hold.LAST)


@given(*[st.sets(st.sampled_from(NAMES)).map(sorted).map("".join)] * 4)
def test_a_pool_never_loses_too_much(current: str, shown: str, up: str, gone: str):
    """Never below one server; of those that serve never all, and never more than half unconfirmed."""
    gone = "".join(set(gone) - set(up)) if set(gone) & set(up) and len(gone) % 2 else gone
    left, held, hold = decided(current, shown, up=up, gone=gone)
    serving = set(up) & set(current)
    assert left or not current
    assert set(shown) <= set(left)
    assert set(left) <= set(shown) | set(current)
    assert not serving or serving & set(left)
    assert 2 * len(serving - set(left) - set(gone)) <= len(serving)
    assert (hold is None) == (not held)
    assert set(held) == set(left) - set(shown)
