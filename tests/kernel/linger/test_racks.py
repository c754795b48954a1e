"""Shared addresses of nodes on different segments: a router is between, and strays go through a VXLAN."""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from support.linger.linger_field import PORT
from support.linger.node_changes import COUNT, PERIOD, changes_of
from support.linger.shared_field import SHARED, SHARED6, SharedField, shared_field
from support.network.checked_streams import CheckedStreams
from support.network.namespaces import INTERFACE, Node
from support.processes.processes import kill
from support.processes.waiting import wait_until

from appliance.model.snapshot.linger import inside

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]

_COUNTS: Final = (2, 3, 5) if os.environ.get("E2E_FULL") == "1" else (3,)
_WHOLE: Final = pytest.mark.slow("whole appliances in racks of their own")
_DEVICES: Final = ("lb-strays4", "lb-strays6")
_VXLAN_PORT: Final = 29447
_ASKED: Final = 4711


@contextmanager
def streams_of(field: SharedField) -> Iterator[CheckedStreams]:
    """Open streams to both addresses, whose packets are no larger than those of a real network."""
    field.client.ip("link", "set", INTERFACE, "gso_max_segs", "1")
    with CheckedStreams(field.client, port=PORT, period=PERIOD) as streams:
        streams.connect(SHARED, COUNT)
        streams.connect(SHARED6, COUNT)
        yield streams


def devices(node: Node) -> dict[str, str]:
    """Return the index and all of each VXLAN device of a node, by its name."""
    lines = node.ip("-oneline", "link", "show", "type", "vxlan").splitlines()
    return {each.split()[1].strip(":"): each.split(":")[0] for each in lines}


@pytest.mark.promise("program", "linger")
def test_a_change_of_nodes_behind_routers_ends_nothing():
    """Connections of the node that the router leaves go on there, with full-size packets."""
    with shared_field(2, racks=True, vxlan={}) as field, streams_of(field) as streams:
        before = streams.report().by
        assert set(before) == {"one", "two"}
        for names in (("one",), ("two",), ("one", "two")):
            field.route(*names)
            streams.go_on()
        assert streams.report().ended == {}
        assert streams.report().by == before


@_WHOLE
@pytest.mark.promise("docs/shared-ips.md", "behind routers, nodes that leave and return end no connection")
@pytest.mark.parametrize("count", _COUNTS)
def test_changes_of_nodes_behind_routers(count: int):
    """Nodes leave, return, stop and start, and no stream ends; a dead one takes its own streams along."""
    with shared_field(count, racks=True, vxlan={}) as field:
        field.client.ip("link", "set", INTERFACE, "gso_max_segs", "1")
        with changes_of(field) as changes:
            for name in field.machines:
                changes.leave_and_return(name)
            changes.restart("one")
            assert changes.streams.report().ended == {}
            changes.die("two")


@pytest.mark.full("what would end without us")
def test_without_a_vxlan_all_that_the_router_moves_end():
    """No packet gets to a node behind a router, which the status says; what the router moves is reset."""
    with shared_field(2, racks=True, wait=False) as field:
        two = field.machines["two"].address
        wait_until(
            lambda: (
                f"{two} is behind a router, and there is no `linger.vxlan`"
                in str(field.nodes["one"].status().get("trouble"))
            ),
            what="the peer is named",
        )
        with streams_of(field) as streams:
            moved = streams.report().by["two"]
            field.route("one")
            wait_until(
                lambda: sum(streams.report().ended.values()) >= moved, what="they have ended", timeout=60.0
            )
            assert sum(streams.report().ended.values()) == moved


@_WHOLE
def test_clients_with_larger_segments_learn_the_size():
    """Connections from before the VXLAN have larger segments: the node that leads them sends ICMP errors."""
    with shared_field(2, racks=True, vxlan={}) as field:
        for machine in field.machines.values():
            for word in ("ip", "ip6"):
                machine.run(["nft", "flush", "chain", word, "lb_linger", "accepted"])
        with streams_of(field) as streams:
            before = streams.report().by
            for names in (("one",), ("two",)):
                field.route(*names)
                streams.go_on()
            assert streams.report().ended == {}
            assert streams.report().by == before


@_WHOLE
def test_a_restart_keeps_the_devices_and_an_end_removes_them():
    """After `kill -9` they are the same ones; a lost one is made again; nothing is left at the end."""
    with shared_field(2, racks=True, vxlan={}) as field, streams_of(field) as streams:
        one, appliance = field.machines["one"], field.nodes["one"].appliance
        before = devices(one)
        assert set(before) == set(_DEVICES)
        field.route("one")
        pid = appliance.program_pid("linger")
        assert pid
        kill(pid)
        streams.go_on()
        appliance.wait_for_restart("linger", pid)
        field.wait_until_ready()
        assert devices(one) == before
        for device in _DEVICES * 2:
            one.ip("link", "delete", device)
            wait_until(lambda: set(devices(one)) == set(_DEVICES), what="it is there again")
            field.wait_until_ready()
            streams.go_on()
        assert streams.report().ended == {}
        field.nodes["two"].appliance.stop(patience=30.0)
        assert devices(field.machines["two"]) == {}
        appliance.reload({**field.config("one"), "linger": {"key": "cd" * 32}})
        wait_until(lambda: devices(one) == {}, what="it is not wanted any more")


@_WHOLE
def test_only_the_nodes_can_send_through_the_vxlan():
    """What the other node wraps gets in, what a client has wrapped as if it came from there does not."""
    with shared_field(2, racks=True, vxlan={}) as field:
        one, two = field.machines["one"], field.machines["two"]
        with one.inside(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as got:
            got.bind((inside(one.address), _ASKED))
            got.settimeout(30.0)
            for node in (field.client, two):
                with node.inside():
                    _send_wrapped(one, field, b"wrapped by " + node.name.encode())
            assert got.recv(100) == b"wrapped by " + two.name.encode()


def _send_wrapped(to: Node, field: SharedField, said: bytes) -> None:
    """Send a VXLAN packet with a datagram of the other node in it, by a plain socket."""
    mac = to.ip("link", "show", _DEVICES[0]).split("link/ether ")[1].split()[0]
    source, target = inside(field.machines["two"].address), inside(to.address)
    datagram = struct.pack("!HHHH", _ASKED, _ASKED, 8 + len(said), 0) + said
    head = bytes((0x45, 0)) + struct.pack("!HHHBB", 20 + len(datagram), 0, 0, 64, 17)
    ends = socket.inet_aton(source) + socket.inet_aton(target)
    packet = head + struct.pack("!H", _sum(head + ends)) + ends + datagram
    frame = bytes.fromhex(mac.replace(":", "") + "020000000001" + "0800") + packet
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        sending.sendto(bytes.fromhex("0800000000000100") + frame, (to.address, _VXLAN_PORT))


def _sum(head: bytes) -> int:
    """Return the checksum of an IPv4 header without one (RFC 1071)."""
    total = sum(struct.unpack(f"!{len(head) // 2}H", head))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
