"""Shared addresses: all nodes serve them, and a change of the router's ECMP set ends no connection."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import pytest
from support.linger.linger_field import PORT, listed
from support.linger.node_changes import COUNT, PERIOD
from support.linger.shared_field import OUTSIDE, OUTSIDE6, SHARED, SHARED6, UPLINK, SharedField, shared_field
from support.network import ack_flood
from support.network.checked_streams import CheckedStreams
from support.network.namespaces import INTERFACE
from support.processes.processes import end, kill
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

from appliance.core.linger.shared_address_rules import RATE

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]

_LATE: Final = 3600
_ABSENT: Final = "192.0.2.99"
_CLOSED: Final = 7  # TCP_CLOSE of net/tcp_states.h

_FLOOD: Final = "50000" if os.environ.get("E2E_FULL") else str(2 * RATE)
"""Packets a second, of which RATE are asked about; more would have one of two processors for themselves."""

_MORE: Final = tuple(
    pytest.param(*each, marks=pytest.mark.full("the same with more nodes"))
    for each in ((3, False), (5, False), (5, True))
)
_WHOLE: Final = pytest.mark.slow("whole appliances behind a router")


@contextmanager
def streams_of(field: SharedField) -> Iterator[CheckedStreams]:
    """Open streams to both addresses, at all nodes that the router uses."""
    with CheckedStreams(field.client, port=PORT, period=PERIOD) as streams:
        streams.connect(SHARED, COUNT)
        streams.connect(SHARED6, COUNT)
        yield streams


@pytest.mark.promise("program", "linger")
def test_a_change_of_two_nodes_ends_nothing():
    """Both serve; connections of the node that the router leaves go on there, and so on until it is back."""
    with shared_field(2) as field, streams_of(field) as streams:
        before = streams.report().by
        assert set(before) == {"one", "two"}
        for names in (("one",), ("two",), ("one", "two")):
            field.route(*names)
            streams.go_on()
        assert streams.report().ended == {}
        assert streams.report().by == before
        wait_until(
            lambda: all(field.strays(name).get("asked") for name in ("one", "two")),
            what="both have asked the other",
        )
        # No packet can be forwarded through a router.
        answer = field.nodes["one"].appliance.reload(field.config("one", f"{OUTSIDE}.1"))
        assert f"{OUTSIDE}.1 is behind a router, and there is no `linger.vxlan`" in str(answer)


def test_seven_changes_of_three_nodes_end_nothing():
    """Streams that began meanwhile, too; each goes on at its node, which soon gets its packets alone."""
    with shared_field(3) as field, streams_of(field) as streams:
        for number in (2, 3, 2, 1, 3, 1, 3):
            field.route(*tuple(field.machines)[-number:])
            streams.go_on()
            streams.connect(SHARED, 5)
        assert streams.report().ended == {}
        assert set(streams.report().by) == set(field.machines)
        field.route("three")
        streams.go_on()
        led = field.strays("three").get("led", 0)
        wait_until(lambda: field.strays("three").get("led", 0) > led, what="three knows the owners")


class _WithAbsentPeer(SharedField):
    """Nodes one of whose peers does not run: they have to give it time to be heard."""

    def config(self, name: str, *more: str) -> dict[str, object]:
        return super().config(name, _ABSENT, *more)


def test_a_node_that_starts_serves_once_it_would_forward():
    """Until all peers were heard, or had their time, a packet of another node's connection would be reset."""
    with _WithAbsentPeer(1, wait=False) as field:
        wait_until(lambda: field.serves("one"), what="one serves", timeout=30.0)
        assert [each["ready"] for each in field.shared("one")] == [True, True]


@_WHOLE
@pytest.mark.parametrize(("count", "resilient"), [(2, False), (3, True), *_MORE])
def test_without_linger_all_that_the_router_moves_end(count: int, resilient: bool):  # noqa: FBT001  # a case
    """What is kept above is lost: with two nodes or resilient groups, the streams of the node that leaves."""
    with shared_field(count, linger=False, resilient=resilient) as field, streams_of(field) as streams:
        *others, last = field.machines
        before = streams.report().by
        field.route(*others)
        wait_until(
            lambda: sum(streams.report().ended.values()) >= before[last], what="they have ended", timeout=60.0
        )
        streams.go_on()
        ended = sum(streams.report().ended.values())
        sys.stderr.write(f"{ended} of {sum(before.values())} have ended, {before[last]} were at {last}\n")
        if count == 2 or resilient:
            assert ended == before[last]
        else:
            assert ended > before[last]


@pytest.mark.parametrize("count", [pytest.param(2, marks=_WHOLE), 3])
def test_connections_of_a_dead_node_are_reset(count: int):
    """They end as soon as the others have found it dead and all deny them; those of the others go on."""
    with shared_field(count) as field, streams_of(field) as streams:
        before = streams.report().by
        field.route("one")  # which learns the owners of some
        streams.go_on()
        field.machines["two"].isolate()
        wait_until(
            lambda: sum(streams.report().ended.values()) >= before["two"], what="its own end", timeout=30.0
        )
        assert sum(streams.report().ended.values()) == before["two"]
        assert not any("closed" in why for why in streams.report().ended)
        streams.go_on()
        sys.stderr.write(f"{field.strays('one')} {streams.report()}\n")


@_WHOLE
@pytest.mark.promise("docs/shared-ips.md", "clients of a dead node are made to send, and are reset")
@pytest.mark.parametrize("count", [2, 3])
def test_clients_of_a_dead_node_are_made_to_send(count: int):
    """Each has sent one packet after its death, has nothing to send again, and is reset nevertheless."""
    with shared_field(count) as field, field.client.inside(), ExitStack() as stack:
        opened = [
            stack.enter_context(socket.create_connection((address, PORT)))
            for address in (SHARED, SHARED6) * COUNT
        ]
        node_of = {each: each.recv(64).decode().strip() for each in opened}
        lost = {each for each, node in node_of.items() if node == "two"}
        assert lost
        assert lost != node_of.keys()
        one, two = field.nodes["one"].appliance, field.machines["two"]
        wait_until(lambda: _knows_others(one), what="one knows who else serves")
        two.isolate()
        field.route(*(each for each in field.machines if each != "two"))
        for each in opened:  # sends a keep-alive, and the next one much later
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _LATE)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        wait_until(lambda: all(map(_is_reset, lost)), what="clients of the dead node are reset")
        assert not any(map(_is_reset, node_of.keys() - lost))
        if count == 2:
            wait_until(lambda: one.events("last-path"), what="one is the last node that serves")
        assert [each["before"] for each in one.events("last-path")] == [[two.address, two.address6]] * (
            count == 2
        )


def _knows_others(node: Appliance) -> bool:
    """Return whether `announce` has seen another node with each shared IP: without, none is the last one."""
    return all(each["others"] for each in node.ask("announce", "status")["addresses"])  # type: ignore[attr-defined]  # JSON


def _is_reset(client: socket.socket) -> bool:
    return client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == bytes([_CLOSED])


@_WHOLE
def test_a_node_comes_back_from_isolation():
    """A node that was cut off keeps its connections whose packets reached no other node meanwhile.

    Of IPv4 only: the router gives those of IPv6 to the other nodes, which reset them.
    """
    with shared_field(3) as field, CheckedStreams(field.client, port=PORT, period=PERIOD) as streams:
        streams.connect(SHARED, COUNT)
        before = streams.report().by
        field.machines["two"].isolate()
        wait_until(
            lambda: all(len(listed(each, "nodes")) == 1 for each in field.shared("one")),
            what="one counts it as dead",
        )
        field.machines["two"].rejoin()
        field.wait_until_ready()
        for names in (("one", "three"), ("two",)):
            field.route(*names)
            streams.go_on()
        assert streams.report().ended == {}
        assert streams.report().by == before


@_WHOLE
def test_a_flood_of_bogus_packets():
    """It is limited and told, and nothing ends while the router changes nodes under it."""
    with shared_field(2) as field, streams_of(field) as streams:
        mac = field.machines["one"].mac
        command = [sys.executable, "-m", ack_flood.__name__, INTERFACE, mac, SHARED, str(PORT), _FLOOD]
        paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        flood = field.router.start(command, environment=paths)
        wait_until(lambda: field.strays("one").get("limited"), what="it is limited", timeout=60.0)
        for names in (("one",), ("two",), ("one", "two")):
            field.route(*names)
            streams.go_on()
        end(flood)
        assert streams.report().ended == {}
        log = field.nodes["one"].appliance.log()
        assert "strays-limited" in log
        sys.stderr.write(f"{field.strays('one')} {streams.pauses()}\n")


@_WHOLE
@pytest.mark.parametrize("racks", [False, True])
def test_a_path_that_takes_smaller_packets(racks: bool):  # noqa: FBT001  # a case
    """All errors of the router reach one node; they are led to those whose packets were too large."""
    with shared_field(3, racks=racks, vxlan={} if racks else None) as field:
        # Not the link's: its end would drop what the client sends.
        field.router.ip(*f"route replace {OUTSIDE}.0/24 dev {UPLINK} mtu 1300".split())
        field.router.ip(*f"route add {OUTSIDE6}:/64 dev {UPLINK} metric 1 mtu 1300".split())
        for version, address, via in (
            ("-4", SHARED, field.machines["one"].address),
            ("-6", SHARED6, field.machines["one"].address6),
        ):
            field.router.ip(*f"{version} route add {address} via {via} table 102".split())
            field.router.ip(*f"{version} rule add iif lo table 102".split())
        with streams_of(field) as streams:
            assert set(streams.report().by) == set(field.machines)
            streams.go_on()
            assert streams.report().ended == {}


@_WHOLE
def test_a_first_packet_here_and_the_next_one_there():
    """A connection belongs to the node that got its SYN, though all that follows arrives at another."""
    with shared_field(2) as field:
        field.route("two")
        for word, address, via in (
            ("ip", SHARED, field.machines["one"].address),
            ("ip6", SHARED6, field.machines["one"].address6),
        ):
            version = "-6" if word == "ip6" else "-4"
            field.router.ip(*f"{version} route add {address} via {via} table 101".split())
            field.router.ip(*f"{version} rule add fwmark 1 table 101".split())
            field.router.run(["nft", f"add table {word} steer"])
            chain = f"{word} steer first"
            field.router.run(["nft", f"add chain {chain} {{ type filter hook prerouting priority -150; }}"])
            field.router.run(["nft", f"add rule {chain} tcp flags & (syn | ack) == syn meta mark set 1"])
        with streams_of(field) as streams:
            streams.go_on()
            assert set(streams.report().by) == {"one"}
            assert streams.report().ended == {}


@_WHOLE
def test_restarts_and_flushes_end_nothing():
    """Each node's program is killed while it leads packets, and its rules are flushed: all go on."""
    with shared_field(3) as field, streams_of(field) as streams:
        before = streams.report().by
        field.route("one")
        streams.go_on()
        for name, node in field.nodes.items():
            pid = node.appliance.program_pid("linger")
            assert pid
            kill(pid)
            streams.go_on()
            node.appliance.wait_for_restart("linger", pid)
            field.route(name)
            streams.go_on()
        field.wait_until_ready()
        for name, node in field.nodes.items():
            node.node.run(["nft", "flush", "ruleset"])
            field.route(name)
            streams.go_on()
        assert streams.report().ended == {}
        assert streams.report().by == before
