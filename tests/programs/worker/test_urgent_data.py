"""TCP urgent data (MSG_OOB) arrives in line, and costs a worker no processor time: RFC 6093 section 6.

`splice` stops before an urgent byte: with EAGAIN on a socket that stays readable, and once the peer's FIN is
there as if the stream had ended.
"""

import os
import signal
import socket
import threading

import pytest
from support.processes.processes import cpu_seconds
from support.processes.waiting import wait_until
from support.worker.trace import Origin, Relay, Setting, read_all, relay

from appliance.worker.relay.raw_io import CHUNK

pytestmark = pytest.mark.programs

BULK = 4 << 20
SIDES = ["from the client", "from the server"]


def ends(running: Relay, side: str) -> tuple[socket.socket, socket.socket]:
    """Return who sends and who receives."""
    client, server = running.pair()
    client.sendall(b"hello")
    assert server.recv(10) == b"hello"
    return (client, server) if side == SIDES[0] else (server, client)


def exactly(receiver: socket.socket, count: int) -> bytes:
    """Return so many bytes."""
    got = bytearray()
    while len(got) < count:
        chunk = receiver.recv(count - len(got))
        assert chunk, f"ended after {len(got)} of {count}"
        got += chunk
    return bytes(got)


def pour(sender: socket.socket, receiver: socket.socket) -> None:
    """Send so much that the direction is spliced."""
    data = os.urandom(BULK)
    thread = threading.Thread(target=sender.sendall, args=(data,))
    thread.start()
    assert exactly(receiver, BULK) == data
    thread.join()


@pytest.mark.parametrize("side", SIDES)
def test_urgent_byte_arrives_in_line(side: str):
    """Between bytes of a conversation it keeps its place."""
    with relay(Setting(origins=[Origin()])) as running:
        sender, receiver = ends(running, side)
        sender.sendall(b"before")
        sender.send(b"!", socket.MSG_OOB)
        sender.sendall(b"after")
        assert exactly(receiver, 12) == b"before!after"


def test_urgent_byte_may_be_the_first_of_all():
    """A server that greets with an urgent byte, before anything was read from it, loses none."""
    with relay(Setting(origins=[Origin()])) as running:
        client, server = running.pair()
        server.send(b"!", socket.MSG_OOB)
        server.sendall(b"after")
        assert exactly(client, 6) == b"!after"


@pytest.mark.parametrize("side", SIDES)
def test_urgent_byte_right_behind_a_full_read_arrives_in_line(side: str):
    """A read that takes a whole chunk ends where the urgent byte begins, and the next one begins there."""
    with relay(Setting(origins=[Origin()])) as running:
        sender, receiver = ends(running, side)
        data = os.urandom(CHUNK)
        os.kill(running.worker.pid, signal.SIGSTOP)
        sender.sendall(data)
        sender.send(b"!", socket.MSG_OOB)
        sender.sendall(b"after")
        os.kill(running.worker.pid, signal.SIGCONT)
        assert exactly(receiver, CHUNK + 6) == data + b"!after"


@pytest.mark.parametrize("side", SIDES)
def test_urgent_byte_in_bulk_arrives_in_line(side: str):
    """A direction that is spliced goes on past it, again and again, and is spliced again."""
    with relay(Setting(origins=[Origin()])) as running:
        sender, receiver = ends(running, side)
        for _ in range(5):
            pour(sender, receiver)
            sender.send(b"urgent", socket.MSG_OOB)
            sender.sendall(b"after")
            assert exactly(receiver, 11) == b"urgentafter"
        pour(sender, receiver)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("tail", [b"", b"after"])
def test_urgent_byte_before_the_end_is_not_taken_for_it(side: str, tail: bytes):
    """Bulk, an urgent byte, more, and the end, all of it there at once: the receiver gets all of it.

    The receiver does not read until the worker has stopped to, and then finds it so.
    """
    data = os.urandom(16 << 20)
    with relay(Setting(origins=[Origin()])) as running:
        sender, receiver = ends(running, side)

        def send() -> None:
            sender.sendall(data)
            sender.send(b"!", socket.MSG_OOB)
            sender.sendall(tail)
            sender.shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=send)
        thread.start()
        assert exactly(receiver, 8 << 20) == data[: 8 << 20]
        thread.join(0.5)  # the worker's queue fills, where the machine is fast enough for it
        assert read_all(receiver) == data[8 << 20 :] + b"!" + tail
        thread.join()


@pytest.mark.parametrize("side", SIDES)
def test_urgent_byte_costs_no_processor_time(side: str):
    """A spliced direction with an urgent byte, and more behind it that cannot go on, lets the worker rest."""
    with relay(Setting(origins=[Origin()])) as running:
        sender, receiver = ends(running, side)
        pour(sender, receiver)
        sender.send(b"!", socket.MSG_OOB)
        sender.sendall(b"after")
        before = cpu_seconds(running.worker.pid)
        idle = threading.Event()
        idle.wait(2.0)
        assert cpu_seconds(running.worker.pid) - before < 0.5
        assert exactly(receiver, 6) == b"!after"


@pytest.mark.parametrize("side", SIDES)
def test_urgent_bytes_into_a_jam_cost_no_processor_time(side: str):
    """The same while the receiver reads nothing: the worker waits for it, and then delivers all."""
    with relay(Setting(origins=[Origin()])) as running:
        sender, receiver = ends(running, side)
        pour(sender, receiver)
        sender.setblocking(False)  # noqa: FBT003  # the standard library's signature
        sent = bytearray()

        def jammed() -> bool:
            for flags in (0, socket.MSG_OOB):
                try:
                    data = os.urandom(50_000)
                    sent.extend(data[: sender.send(data, flags)])
                except BlockingIOError:
                    return True
            return False

        wait_until(jammed, what="the sender is jammed", pause=0.0)
        before = cpu_seconds(running.worker.pid)
        threading.Event().wait(2.0)
        assert cpu_seconds(running.worker.pid) - before < 0.5
        sender.shutdown(socket.SHUT_WR)
        assert read_all(receiver) == bytes(sent)
