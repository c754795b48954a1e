"""Connections of lost servers: how the kernel is asked, by a conntrack of the test's own."""

import socket

import pytest

from appliance.core.forwarding.mark_numbers import MARK
from appliance.forward import ended_connections as module
from appliance.forward.ended_connections import end_connections
from appliance.net.netlink.conntrack import Flow, TrackedConnection
from appliance.net.packets import challenge_acks

pytestmark = pytest.mark.sockets


class Kernel:
    """A conntrack with connections of the numbers 2, 3 and 9; it notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, int]] = []

    def connections(
        self, mark: int, mask: int, *, but: frozenset[str] = frozenset()
    ) -> tuple[TrackedConnection, ...]:
        """Return those with the mark in the bits of the mask, and none to the addresses `but`."""
        self.asked.append(("list", mark, mask))
        found = (_tracked(each) for each in (9, 3, 2, 3) if not (MARK | each) & mask ^ mark & mask)
        return tuple(each for each in found if each.client.destination not in but)

    def delete(self, mark: int, mask: int) -> None:
        """Delete nothing."""
        self.asked.append(("delete", mark, mask))

    def forget(self, connection: TrackedConnection) -> bool:
        """Note that one is deleted."""
        self.asked.append(("forget", connection.mark, 0))
        return True

    def close(self) -> None:
        """Do nothing."""


class RawSocket:
    """A socket of a machine without IPv6; it notes to whom something is sent."""

    sent: list[str]

    def __init__(self, family: int, *_: int) -> None:
        if family == socket.AF_INET6:
            raise OSError(97, "Address family not supported by protocol")

    def sendto(self, _: bytes, to: tuple[str, int]) -> None:
        """Send nothing."""
        RawSocket.sent.append(to[0])

    def setsockopt(self, *_: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def _tracked(number: int) -> TrackedConnection:
    client = Flow(source=f"192.0.2.{number}", source_port=1, destination="192.0.2.200", destination_port=80)
    server = Flow(source=f"198.51.100.{number}", source_port=80, destination="192.0.2.1", destination_port=1)
    return TrackedConnection(mark=MARK | number, client=client, server=server, open=True)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """One instead of the real one."""
    made = Kernel()
    monkeypatch.setattr(module, "Conntrack", lambda: made)
    monkeypatch.setattr(challenge_acks.socket, "socket", RawSocket)
    RawSocket.sent = []
    return made


def test_many_lost_servers_are_one_question(kernel: Kernel):
    """Conntrack is listed once, and what is deleted is only what it has; others' connections stay."""
    ended = end_connections({2: "pool/a", 4: "pool/a", 3: "pool/b", 7: "pool/c"})

    assert ended == {"pool/a": 1, "pool/b": 2, "pool/c": 0}
    assert [each[0] for each in kernel.asked] == ["list", "delete", "delete"]
    assert [each[1:] for each in kernel.asked[1:]] == [(MARK | each, 0xFFFFFFFF) for each in (2, 3)]


def test_connections_of_another_node_stay(kernel: Kernel):
    """With `sync` the kernel's table has them too, under the same marks: each of ours is deleted alone."""
    assert end_connections({2: "pool/a"}, but=frozenset({"192.0.2.200"})) == {"pool/a": 0}
    assert [each[0] for each in kernel.asked] == ["list"]
    assert end_connections({2: "pool/a"}, but=frozenset({"192.0.2.201"})) == {"pool/a": 1}
    assert [each[0] for each in kernel.asked] == ["list", "list", "forget"]


@pytest.mark.usefixtures("kernel")
def test_a_machine_without_ipv6_ends_the_connections_of_ipv4():
    """Both ends of each are told, and nothing of the other family is needed."""
    assert end_connections({2: "pool/a"}) == {"pool/a": 1}
    assert RawSocket.sent == ["192.0.2.2", "198.51.100.2"]
