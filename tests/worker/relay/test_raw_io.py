"""Reads, writes and splices, with failures as numbers."""

import errno
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import closing
from typing import Final

import pytest

from appliance.worker.relay.pipes import Pipe
from appliance.worker.relay.raw_io import AGAIN, CHUNK, Transfer
from appliance.worker.relay.raw_sockets import shutdown_write

pytestmark = pytest.mark.sockets

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pairs() -> Iterator[tuple[Pair, Pair]]:
    """Give two connections, none of whose ends waits."""
    first, second = socket.socketpair(), socket.socketpair()
    for each in (*first, *second):
        each.setblocking(False)  # noqa: FBT003  # the standard library's signature
    with closing(first[0]), closing(first[1]), closing(second[0]), closing(second[1]):
        yield first, second


def test_what_is_read_is_written(pairs: tuple[Pair, Pair]):
    """A chunk at the most; what follows is read with the next one."""
    (client, source), (target, server) = pairs
    transfer = Transfer()
    data = os.urandom(CHUNK + 5)
    client.sendall(data)
    assert transfer.receive(source.fileno()) == CHUNK
    assert transfer.send(target.fileno()) == CHUNK
    assert not transfer.rest()
    assert transfer.receive(source.fileno()) == 5
    assert bytes(transfer.rest()) == data[CHUNK:]
    assert transfer.send(target.fileno()) == 5
    assert server.recv(2 * CHUNK, socket.MSG_WAITALL) == data


def test_the_rest_stays_as_it_was(pairs: tuple[Pair, Pair]):
    """What the target does not take is kept, whatever is read afterwards."""
    (client, source), (target, _) = pairs
    transfer = Transfer()
    data = os.urandom(CHUNK)
    full = False
    while not full:
        client.sendall(data)
        assert transfer.receive(source.fileno()) == CHUNK
        full = transfer.send(target.fileno()) != CHUNK
    rest = transfer.rest()
    assert transfer.left() == len(rest) > 0
    assert bytes(rest) == data[CHUNK - len(rest) :]
    client.sendall(b"something else")
    assert transfer.receive(source.fileno()) == 14
    assert bytes(rest) == data[CHUNK - len(rest) :]


def test_nothing_to_read_and_the_end(pairs: tuple[Pair, Pair]):
    """EAGAIN, a FIN, and a descriptor that is none."""
    (client, source), (target, server) = pairs
    transfer = Transfer()
    assert transfer.receive(source.fileno()) == AGAIN
    assert not transfer.rest()
    client.close()
    assert transfer.receive(source.fileno()) == 0
    assert not transfer.rest()
    server.close()
    transfer.put(b"x")
    assert transfer.send(target.fileno()) == -errno.EPIPE
    assert bytes(transfer.rest()) == b"x"
    assert transfer.receive(-1) == -errno.EBADF


def test_put(pairs: tuple[Pair, Pair]):
    """What is put is written instead of what was read."""
    _, (target, server) = pairs
    transfer = Transfer()
    transfer.put(b"PROXY and two chunks" + bytes(2 * CHUNK))
    assert transfer.send(target.fileno()) == 20 + 2 * CHUNK
    assert server.recv(20) == b"PROXY and two chunks"
    transfer.put(b"")
    assert transfer.send(target.fileno()) == 0


_SEGMENTS_IN: Final = 140  # where linux/tcp.h has tcpi_segs_in


def segments(connection: socket.socket) -> int:
    """Return how many segments have come (`tcpi_segs_in`)."""
    told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 200)
    if len(told) < _SEGMENTS_IN + 4:
        pytest.skip(f"TCP_INFO has only {len(told)} bytes: an emulator's")
    return int(struct.unpack_from("I", told, _SEGMENTS_IN)[0])


def test_what_is_last_goes_with_the_fin():
    """A write that a FIN follows waits for it, and both go in one segment."""
    transfer, taken = Transfer(), []
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        for _ in range(5):  # a machine that stands still between the two calls may make two segments of them
            target = socket.create_connection(listener.getsockname())
            server, _ = listener.accept()
            with closing(target), closing(server):
                before = segments(server)
                transfer.put(b"the end")
                assert transfer.send_last(target.fileno()) == 7
                assert not transfer.rest()
                shutdown_write(target.fileno())
                assert server.recv(20, socket.MSG_WAITALL) == b"the end"
                taken.append(segments(server) - before)
    assert min(taken) == 1


def test_what_is_last_may_not_be_taken(pairs: tuple[Pair, Pair]):
    """The failure of the last write is a number, too."""
    _, (target, server) = pairs
    transfer = Transfer()
    server.close()
    transfer.put(b"x")
    assert transfer.send_last(target.fileno()) == -errno.EPIPE
    assert bytes(transfer.rest()) == b"x"


def test_splice(pairs: tuple[Pair, Pair]):
    """Through a pipe, with the same numbers."""
    (client, source), (target, server) = pairs
    transfer = Transfer()
    pipe = Pipe()
    assert transfer.splice(source.fileno(), pipe.writer, 1000) == AGAIN
    client.sendall(b"bulk")
    assert transfer.splice(source.fileno(), pipe.writer, 1000) == 4
    assert transfer.splice(pipe.reader, target.fileno(), 4) == 4
    assert server.recv(10) == b"bulk"
    client.close()
    assert transfer.splice(source.fileno(), pipe.writer, 1000) == 0
    assert transfer.splice(source.fileno(), -1, 1000) == -errno.EBADF
    pipe.close()
