"""What the kernel says of its connections: read, or one error, whatever the bytes are; what it is asked."""

import errno
import os
import socket
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.net.netlink import netfilter, netlink
from appliance.net.netlink.conntrack import Conntrack, Flow, TrackedConnection, decode
from appliance.net.netlink.netlink import Message
from appliance.net.netlink.rtnetlink import DamagedMessage

pytestmark = pytest.mark.sockets

CLIENT = Flow(source="192.0.2.7", source_port=40000, destination="192.0.2.200", destination_port=443)
SERVER = Flow(source="10.0.0.4", source_port=6443, destination="192.0.2.1", destination_port=51000)


def attribute(kind: int, payload: bytes) -> bytes:
    """Return an attribute as the kernel writes it."""
    size = 4 + len(payload)
    return struct.pack("=HH", size, kind) + payload + bytes(-size % 4)


def flow(given: Flow) -> bytes:
    """Return the tuple of a direction."""
    addresses = (
        attribute(kind, socket.inet_aton(each)) for kind, each in ((1, given.source), (2, given.destination))
    )
    ports = attribute(1, b"\x06")
    ports += b"".join(
        attribute(kind, struct.pack("!H", each))
        for kind, each in ((2, given.source_port), (3, given.destination_port))
    )
    return attribute(0x8001, b"".join(addresses)) + attribute(0x8002, ports)


def message(body: bytes) -> Message:
    """Return a message with this behind its headers."""
    (made,) = netlink.split(struct.pack("=IHHII", 20 + len(body), 0x100, 0, 0, 0) + b"\x02\0\0\0" + body)
    return made


def body(state: int, *more: bytes) -> bytes:
    """Return a connection in a state of TCP, with further attributes."""
    protocol = attribute(0x8004, attribute(0x8001, attribute(1, bytes([state]))))
    mark = attribute(8, struct.pack("!I", 0x6C620003))
    return b"".join((attribute(0x8001, flow(CLIENT)), attribute(0x8002, flow(SERVER)), protocol, mark, *more))


def test_all_that_is_told_is_read():
    """Id, time that remains, start, and the bytes of both directions."""
    counted = attribute(0x8009, attribute(1, bytes(8)) + attribute(2, struct.pack("!Q", 700)))
    answered = attribute(0x800A, attribute(2, struct.pack("!Q", 2**40)))
    started = attribute(0x8014, attribute(1, struct.pack("!Q", 1_700_000_000_500_000_000)))
    told = (attribute(7, struct.pack("!I", 431_990)), attribute(12, struct.pack("!I", 77)))

    assert decode(message(body(3, counted, answered, started, *told))) == TrackedConnection(
        mark=0x6C620003,
        client=CLIENT,
        server=SERVER,
        open=True,
        established=True,
        id=77,
        remaining=431_990,
        started=1_700_000_000.5,
        sent=700,
        answered=2**40,
    )


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (0, (False, False, False)),
        (1, (False, True, False)),
        (2, (False, True, False)),
        (3, (True, False, True)),
        (4, (True, False, False)),
        (5, (True, False, False)),
        (6, (False, False, False)),
        (7, (False, False, False)),
    ],
)
def test_the_state_of_tcp_tells_whether_it_is_open(state: int, expected: tuple[bool, bool, bool]):
    """What the kernel does not tell is None."""
    found = decode(message(body(state)))
    assert found is not None
    assert (found.open, found.connecting, found.established) == expected
    assert (found.remaining, found.started, found.sent, found.answered) == (None,) * 4


@given(st.binary(max_size=200))
def test_garbage_never_escapes(data: bytes):
    """Any bytes are a connection or a damaged message."""
    for each in (data, body(3) + data, body(3)[: len(data)]):
        with suppress(DamagedMessage):
            decode(message(each))


@pytest.mark.parametrize(("status", "there"), [(0, [True]), (errno.ENOENT, [False])])
def test_one_connection_is_forgotten(monkeypatch: pytest.MonkeyPatch, status: int, there: list[bool]):
    """It is named by what its client sends, and by its id, so that a later one with the same ports stays."""
    asked: list[bytes] = []

    class Requests:
        def __init__(self, **_: int) -> None:
            pass

        def ask(self, requests: list[bytes]) -> list[int]:
            asked.extend(requests)
            return [status]

    monkeypatch.setattr(netfilter, "Requests", Requests)
    connection = TrackedConnection(mark=1, client=CLIENT, server=SERVER, open=True, id=77)

    assert [Conntrack().forget(connection)] == there
    assert asked[0].endswith(attribute(0x8001, flow(CLIENT)) + attribute(12, struct.pack("!I", 77)))


def test_a_refusal_to_forget_is_told(monkeypatch: pytest.MonkeyPatch):
    """EPERM is no missing connection."""

    class Requests:
        def __init__(self, **_: int) -> None:
            pass

        def ask(self, _: list[bytes]) -> list[int]:
            return [errno.EPERM]

    monkeypatch.setattr(netfilter, "Requests", Requests)
    with pytest.raises(OSError, match=os.strerror(errno.EPERM)):
        Conntrack().forget(TrackedConnection(mark=1, client=CLIENT, server=SERVER, open=True, id=77))
