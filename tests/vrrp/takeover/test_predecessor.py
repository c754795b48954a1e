"""What the one before answers to who takes its place."""

import socket
import threading
from collections.abc import Iterator

import pytest

from appliance.net.logging import log as logs
from appliance.vrrp.takeover.predecessor import Predecessor, PredecessorError, PredecessorLeavingError
from appliance.wire.lines import vrrp_takeover
from appliance.wire.lines.control import Answer, bad, encode_answer, good

pytestmark = pytest.mark.sockets


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return a connection: who asks, who answers."""
    asks, answers = socket.socketpair()
    with asks, answers:
        yield asks, answers


def _ask(ends: tuple[socket.socket, socket.socket], answer: Answer) -> object:
    asks, answers = ends

    def say() -> None:
        answers.recv(65536)
        answers.sendall(encode_answer(answer))

    thread = threading.Thread(target=say)
    thread.start()
    try:
        return Predecessor(0, asks, logs.configure("vrrp", level="info", form="json")).ask()
    finally:
        thread.join()


def test_it_tells_its_routers(ends: tuple[socket.socket, socket.socket]):
    """What it knows is what it answers."""
    assert _ask(ends, good(routers=[])) == ()


def test_one_that_leaves_says_so(ends: tuple[socket.socket, socket.socket]):
    """Its place is not taken: it hands over to its peers and goes."""
    with pytest.raises(PredecessorLeavingError):
        _ask(ends, vrrp_takeover.leaving())


@pytest.mark.parametrize("answer", [bad("unknown command"), good(routers="none"), good()])
def test_another_answer_is_no_reason_to_wait_for_its_end(
    ends: tuple[socket.socket, socket.socket], answer: Answer
):
    """One that cannot tell is ended and replaced: it would stay for ever, and nobody looks after it."""
    with pytest.raises(PredecessorError):
        _ask(ends, answer)


def test_an_answer_that_is_there_counts_however_late_we_are(
    ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
):
    """On a busy machine we may stand still between asking and reading: it has answered, and is not killed."""
    asks, answers = ends
    answers.sendall(encode_answer(good(routers=[])))
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr("appliance.vrrp.takeover.predecessor.time.monotonic", lambda: float(next(clock)))
    assert Predecessor(0, asks, logs.configure("vrrp", level="info", form="json")).ask() == ()


def test_one_that_says_nothing_is_not_waited_for(
    ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
):
    """One that hangs does not advertise either: its place is to be taken soon."""
    monkeypatch.setattr("appliance.vrrp.takeover.predecessor._PATIENCE", 0.01)
    with pytest.raises(PredecessorError, match=r"no answer within 0\.01 s"):
        Predecessor(0, ends[0], logs.configure("vrrp", level="info", form="json")).ask()
