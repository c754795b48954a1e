"""A check's conversation: what it says, what it waits for, and when it has passed or missed something."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.snapshot.pools import CheckStep
from appliance.wire.checks.conversation import (
    LONGEST_ANSWER,
    Conversation,
    Missed,
    Move,
    Passed,
    Receive,
    Send,
)

pytestmark = pytest.mark.pure

PING = CheckStep(send="PING\r\n", expect="+PONG")
MASTER = CheckStep(send="INFO replication\r\n", expect="role:master", comment="the master")


def noise(size: int) -> bytes:
    """Return bytes of two letters in no order."""
    return bytes(Random(1).choices(b"ab", k=size))  # noqa: S311  # a test wants them predictable


def after(conversation: Conversation, *pieces: bytes) -> Move:
    """Return what it wants after these pieces; it has nothing to say in between."""
    for piece in pieces:
        assert conversation.move() is Receive.MORE
        conversation.feed(piece)
    return conversation.move()


def judged(step: CheckStep, *pieces: bytes) -> Move:
    """Return what a conversation of one step that only listens makes of an answer in pieces."""
    return after(Conversation([step]), *pieces)


def test_it_says_hears_and_goes_on():
    """Step by step, and each answer is that to what was said last."""
    made = Conversation([PING, MASTER, CheckStep(send_binary="515549540d0a")])
    assert made.ends_by_sending
    assert made.move() == Send(b"PING\r\n")
    assert after(made, b"+PO", b"NG\r\n") == Send(b"INFO replication\r\n")
    assert not made.heard
    assert after(made, b"# Replication\r\nrole:master\r\n") == Send(b"QUIT\r\n")
    assert made.move() == Passed()
    assert made.lacks == ""
    assert made.move() == Passed()


def test_several_things_are_expected_of_one_answer():
    """As in HAProxy, what has come stays there until something is said again."""
    steps = [CheckStep(expect="OK"), CheckStep(expect_binary="2b4F"), CheckStep(expect_rstring="^[+]")]
    assert after(Conversation(steps), b"+OK\r\n") == Passed()
    assert not Conversation(steps).ends_by_sending


def test_nothing_to_do_has_passed():
    """A conversation without steps is over."""
    assert Conversation([]).move() == Passed()
    assert not Conversation([]).ends_by_sending


@pytest.mark.parametrize(
    ("step", "pieces", "expected"),
    [
        (CheckStep(expect="ok"), (b"o",), Receive.MORE),
        (CheckStep(expect="ok"), (b"no", b"t yet"), Receive.MORE),
        (CheckStep(expect="ok"), (b"",), "step 1: nothing came"),
        (CheckStep(expect="ok"), (b"no\r\n", b""), "step 1: no `ok`, 4 bytes came: `no`"),
        (CheckStep(expect="ok", min_recv=3), (b"no",), Receive.MORE),
        (CheckStep(expect="ok", min_recv=3), (b"no", b"no"), "step 1: no `ok`, 4 bytes came: `nono`"),
        (CheckStep(expect="ok", min_recv=1), (b"o",), Receive.MORE),
        (
            CheckStep(expect="ok", min_recv=1, comment="c"),
            (b"xx",),
            "step 1 (c): no `ok`, 2 bytes came: `xx`",
        ),
        (CheckStep(expect="bad", negate=True), (b"fine",), Receive.MORE),
        (CheckStep(expect="bad", negate=True), (b"fine", b""), Passed()),
        (CheckStep(expect="bad", negate=True), (b"",), "step 1: nothing came"),
        (CheckStep(expect_rstring="a*"), (b"",), "step 1: nothing came"),
        (CheckStep(expect="bad", negate=True), (b"too bad",), "step 1: `bad` came, 7 bytes came: `too bad`"),
        (CheckStep(expect_rstring="^E", negate=True, min_recv=5), (b"R....",), Passed()),
        (CheckStep(expect_rstring="^E"), (b"Error",), Passed()),
        (CheckStep(expect_rstring="^E"), (b"error", b""), "step 1: no `^E`, 5 bytes came: `error`"),
        (CheckStep(expect_binary="00ff"), (b"\x00", b"\xff"), Passed()),
        (
            CheckStep(expect_binary="00ff"),
            (b"\x00\x1b", b""),
            "step 1: no `00ff`, 2 bytes came: `\ufffd\ufffd`",
        ),
        (
            CheckStep(expect="ok"),
            (b"x" * LONGEST_ANSWER, b"ok")[:1],
            f"step 1: no `ok`, 16384 bytes came: `{'x' * 60}`",
        ),
    ],
)
def test_what_an_answer_means(step: CheckStep, pieces: tuple[bytes, ...], expected: object):
    """Nothing is missing before it is sure that it does not come; then the reason has what came instead."""
    found = judged(step, *pieces)
    assert (found.reason if isinstance(found, Missed) else found) == expected


def test_what_was_said_is_not_repeated():
    """Servers tell of commands that they do not understand, and a password may stand in one."""
    made = Conversation([CheckStep(send="AUTH lb s3cret\r\n", expect="+OK")])
    assert made.move() == Send(b"AUTH lb s3cret\r\n")
    found = after(made, b"-ERR unknown command `AUTH`, with args beginning with: `s3cret`", b"")
    assert isinstance(found, Missed)
    assert "s3cret" not in found.reason
    assert "-ERR unknown command" in found.reason


def test_a_search_that_takes_too_long_is_a_miss():
    """A server cannot pass by an answer that nobody can judge; nor where the expression must not be found."""
    answer = noise(LONGEST_ANSWER)
    for negate in (False, True):
        found = judged(CheckStep(expect_rstring="(a|b)*a(a|b){200}c", negate=negate), answer)
        assert isinstance(found, Missed)
        assert "takes too long" in found.reason


def test_no_end_is_told_where_something_must_not_come():
    """When the time is up, the reason says what was waited for."""
    made = Conversation([CheckStep(expect="bad", negate=True)])
    assert after(made, b"fine") is Receive.MORE
    assert made.lacks == "step 1: no end without `bad`, 4 bytes came: `fine`"


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_an_answer_means_the_same_however_it_is_cut(answer: bytes, cuts: list[int]):
    """Whole, or in any pieces: the conversation ends alike."""
    steps = [CheckStep(expect_rstring="[a-z]+1"), CheckStep(expect="a"), CheckStep(expect_binary="00")]

    def end(pieces: list[bytes]) -> Move:
        made = Conversation(steps)
        for piece in [*filter(None, pieces), b""]:
            if made.move() is Receive.MORE:
                made.feed(piece)
        return made.move()

    bounds = sorted({0, *(each for each in cuts if each < len(answer)), len(answer)})
    whole = end([answer])
    cut = end([answer[low:high] for low, high in pairwise(bounds)])
    assert cut == whole
