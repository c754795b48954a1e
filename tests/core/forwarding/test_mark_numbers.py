"""Numbers: they stay with their owners, over restarts too, and are not used again soon."""

import pytest

from appliance.core.forwarding import mark_numbers
from appliance.core.forwarding.mark_numbers import Numbers, NumbersExhausted, comment

pytestmark = pytest.mark.pure


def test_an_owner_keeps_its_number():
    """The same name has the same number, another one another."""
    found = Numbers()

    first, second, again = found.number("a"), found.number("b"), found.number("a")
    assert first == again != second


def test_nodes_have_the_same_numbers():
    """A connection that another node goes on with has the mark that it knows, whatever each had before."""
    one, two = Numbers(), Numbers()
    one.number("gone")

    assert [one.number(each) for each in "abc"] == [two.number(each) for each in "abc"]


def test_a_taken_number_is_not_given_again():
    """The next one that is free takes its place."""
    names = [f"server {each}" for each in range(2000)]
    found = Numbers()

    assert len({found.number(each) for each in names}) == len(names)


def test_a_next_process_learns_them_from_the_kernel():
    """By the comments of counters."""
    found = Numbers()
    found.restore({7: comment("a"), 9: comment("b")})

    assert [found.number("b"), found.number("a")] == [9, 7]


def test_what_is_given_up_is_not_used_again_soon():
    """Connections with its mark may be open still."""
    found = Numbers()
    first = found.number("a")
    found.keep(["b"])

    assert found.number("b") != first


def test_numbers_come_to_an_end(monkeypatch: pytest.MonkeyPatch):
    """When all are taken the next one is refused."""
    monkeypatch.setattr(mark_numbers, "_MOST", 2)
    found = Numbers()
    found.number("a")
    found.number("b")

    with pytest.raises(NumbersExhausted):
        found.number("c")


def test_a_comment_is_short_and_can_be_quoted():
    """However long the name is, and whatever it has in it."""
    found = comment('fröntend "x" ' + "y" * 200)

    assert len(found.encode()) <= 120
    assert '"' not in found
    assert found[:16] != comment('fröntend "x" ' + "y" * 201)[:16]
