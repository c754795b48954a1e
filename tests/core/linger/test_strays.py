"""Who has the strays of shared addresses: learnt, renewed, forgotten, and what nobody has."""

import pytest

from appliance.core.linger.strays import (
    AT_ONCE,
    DENIED,
    MOST_DENIED,
    MOST_NOBODYS,
    MOST_OWNED,
    NOBODYS,
    NOBODYS_OF_MANY,
    OWNED,
    StrayChanges,
    Strays,
)
from appliance.wire.linger_strays import Ends

pytestmark = pytest.mark.pure

ADDRESS = "198.51.100.10"
B, C = "192.0.2.2", "192.0.2.3"
OTHERS = {ADDRESS: (B, C)}


def known(*nodes: str) -> Strays:
    """Return what is known of strays where these nodes have been there before."""
    strays = Strays()
    strays.changes({ADDRESS: nodes or (B, C)}, settled=True, now=0.0)
    return strays


def ends(number: int = 1) -> Ends:
    """Return a connection."""
    return (f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 4711, ADDRESS, 443)


def changes(
    strays: Strays, now: float, *, settled: bool = True, others: tuple[str, ...] = (B, C)
) -> StrayChanges:
    """Return what is due, where these nodes may have connections."""
    return strays.changes({ADDRESS: others}, settled=settled, now=now)


def test_a_found_owner_is_put_once():
    """Packets go to it; hearing the same again soon changes nothing."""
    strays = known()
    strays.found(ends(), node=B)
    assert changes(strays, 0.0) == StrayChanges(owned=((ends(), B),))
    strays.found(ends(), node=B)
    assert changes(strays, 1.0) == StrayChanges()


def test_an_owner_is_renewed_before_the_kernel_forgets_it():
    """The element is replaced, in one step, as the kernel extends none."""
    strays = known()
    strays.found(ends(), node=B)
    changes(strays, 0.0)
    strays.found(ends(), node=B)
    assert changes(strays, 10.0) == StrayChanges(removed=(ends(),), owned=((ends(), B),))


def test_an_owner_is_not_touched_while_the_kernel_may_forget_it():
    """Removing an element that is gone, or adding another one, would fail: it waits for a moment."""
    strays = known()
    strays.found(ends(), node=B)
    changes(strays, 0.0)
    strays.found(ends(), node=C)
    strays.denied(ends(), node=B, now=OWNED)
    assert changes(strays, OWNED) == StrayChanges()
    assert changes(strays, OWNED + 1.5) == StrayChanges(owned=((ends(), C),))


def test_another_owner():
    """A client that uses a port again may have come to another node."""
    strays = known()
    strays.found(ends(), node=B)
    changes(strays, 0.0)
    strays.found(ends(), node=C)
    assert changes(strays, 1.0) == StrayChanges(removed=(ends(),), owned=((ends(), C),))


def test_an_owner_that_denies():
    """It is asked no more, and all are; before it was put, it is not put."""
    strays = known()
    strays.found(ends(1), node=B)
    changes(strays, 0.0)
    strays.found(ends(2), node=B)
    for number in (1, 2):
        strays.denied(ends(number), node=B, now=1.0)
    assert changes(strays, 1.0) == StrayChanges(removed=(ends(1),))


def test_denials_from_before_a_move_do_not_count():
    """The node that had it gives it to one that denied it just before: all are asked again."""
    for put in (False, True):
        strays = known()
        strays.denied(ends(), node=C, now=0.0)
        strays.found(ends(), node=B)
        if put:
            changes(strays, 0.0)
        strays.denied(ends(), node=C, now=0.1)
        strays.denied(ends(), node=B, now=0.2)
        strays.denied(ends(), node=B, now=0.3)
        assert changes(strays, 0.3) == StrayChanges(removed=(ends(),) if put else ())
        strays.denied(ends(), node=C, now=0.4)
        assert changes(strays, 0.4) == StrayChanges(nobodys=(ends(),))


def test_what_all_deny_is_nobodys():
    """Each node that may have it has to deny it, at about the same time, and none may have found it since."""
    strays = known()
    strays.denied(ends(), node=B, now=0.0)
    assert changes(strays, 0.0) == StrayChanges()
    strays.denied(ends(), node=C, now=DENIED)
    assert changes(strays, DENIED) == StrayChanges()
    strays.denied(ends(), node=B, now=DENIED + 0.5)
    assert changes(strays, DENIED + 0.5) == StrayChanges(nobodys=(ends(),))
    assert changes(strays, DENIED + 0.5) == StrayChanges()


def test_a_found_connection_is_not_nobodys():
    """What was denied before it was found is forgotten."""
    strays = known()
    strays.denied(ends(), node=B, now=0.0)
    strays.found(ends(), node=C)
    strays.denied(ends(), node=B, now=0.1)
    assert changes(strays, 0.1) == StrayChanges(owned=((ends(), C),))


def test_nothing_is_nobodys_while_others_may_be_unheard():
    """It waits until all are known, and then a node's leaving is enough."""
    strays = known()
    strays.denied(ends(), node=B, now=0.0)
    assert changes(strays, 0.5, settled=False, others=(B,)) == StrayChanges()
    assert changes(strays, 0.9, others=(B,)) == StrayChanges(nobodys=(ends(),))
    strays.denied(ends(), node=B, now=1.0)
    assert changes(strays, 1.0, others=()) == StrayChanges()
    assert changes(strays, 1.0 + DENIED, others=(B,)) == StrayChanges(revoked=True)


def test_a_node_that_comes_may_have_what_was_nobodys():
    """Nothing is nobody's any more, and what was denied is asked again; one that goes changes nothing."""
    strays = known(B)
    strays.denied(ends(), node=B, now=0.0)
    assert changes(strays, 0.0) == StrayChanges(revoked=True)
    strays.denied(ends(), node=C, now=0.0)
    assert changes(strays, 0.0) == StrayChanges()
    assert changes(strays, 0.0, others=(C,)) == StrayChanges(nobodys=(ends(),))
    assert changes(strays, 0.0) == StrayChanges(revoked=True)


def test_a_dead_owner():
    """All elements are removed, those of living nodes are added again, and its own not."""
    strays = known()
    strays.found(ends(1), node=B)
    strays.found(ends(2), node=C)
    changes(strays, 0.0)
    strays.found(ends(3), node=C)
    assert changes(strays, 1.0, others=(B,)) == StrayChanges(flushed=True, owned=((ends(1), B),))


def test_elements_that_are_gone():
    """They are added again."""
    strays = known()
    strays.found(ends(), node=B)
    changes(strays, 0.0)
    strays.restart()
    assert changes(strays, 1.0) == StrayChanges(flushed=True, owned=((ends(), B),))


def test_a_turn_has_a_budget():
    """What is more than it takes is taken in the next turn."""
    strays = known()
    for number in range(AT_ONCE + 1):
        strays.found(ends(number), node=B)
    for number in range(AT_ONCE + 1, 2 * AT_ONCE + 2):
        strays.denied(ends(number), node=B, now=0.0)
    first, second = (changes(strays, 0.0, others=(B,)) for _ in range(2))
    assert (len(first.owned), len(first.nobodys)) == (AT_ONCE, AT_ONCE)
    assert (len(second.owned), len(second.nobodys)) == (1, 1)


def test_too_many_are_nobodys_for_a_shorter_time():
    """The kernel's set has a size; those that have had their time count no more."""
    strays = known()

    def seconds(count: int, now: float) -> list[int]:
        for number in range(count):
            strays.denied(ends(number), node=B, now=now)
        return [changes(strays, now, others=(B,)).seconds for _ in range(-(-count // AT_ONCE))]

    assert set(seconds(MOST_DENIED, 0.0)) == {NOBODYS}
    rest = [each for at in range(1, MOST_NOBODYS // MOST_DENIED) for each in seconds(MOST_DENIED, float(at))]
    assert set(rest) == {NOBODYS}
    assert seconds(1, NOBODYS - 0.5) == [NOBODYS_OF_MANY]
    assert set(seconds(MOST_DENIED, NOBODYS + 0.0)) == {NOBODYS}
    assert seconds(1, NOBODYS + 0.5) == [NOBODYS_OF_MANY]


def test_a_flood_is_forgotten():
    """What is more than is remembered is not, and what is remembered has its end."""
    strays = known()
    for number in range(MOST_OWNED + 1):
        strays.found(ends(number), node=B)
    for number in range(MOST_DENIED + 1):
        strays.denied(ends(MOST_OWNED + number), node=B, now=0.0)
    put = [each for _ in range(MOST_OWNED // AT_ONCE + 1) for each in changes(strays, 0.0).owned]
    assert len(put) == MOST_OWNED
    strays.found(ends(-1 % 2**24), node=B)
    strays.denied(ends(MOST_OWNED + MOST_DENIED), node=B, now=0.0)
    strays.denied(ends(MOST_OWNED + MOST_DENIED), node=C, now=0.0)
    assert changes(strays, 0.0) == StrayChanges()
    strays.found(ends(-2 % 2**24), node=B)
    assert changes(strays, OWNED + 2).owned == ((ends(-2 % 2**24), B),)


def test_nothing_is_pending_once_all_is_put():
    """What nodes have told waits for the kernel; at rest there is nothing to put, nor to count."""
    strays = known()
    assert not strays.pending
    strays.found(ends(), node=B)
    assert strays.pending
    changes(strays, 0.0)
    assert not strays.pending
    strays.denied(ends(2), node=C, now=1.0)
    assert strays.pending
    changes(strays, 1.0)
    assert strays.pending
    changes(strays, 1.0 + 2 * DENIED)
    assert not strays.pending
