"""Everything that a configuration without errors needs and this machine lacks."""

import contextlib
import os
import select
import socket
import time
from collections.abc import Iterable, Iterator
from ipaddress import ip_interface
from typing import Final

from appliance.console.here.announcing import announce_lacks
from appliance.console.here.files import unusable_files
from appliance.console.here.lingering import linger_lacks
from appliance.core.balancing.worker_shares import shortage
from appliance.core.forwarding.plan import families
from appliance.core.status.connection_room import ADVICE
from appliance.forward.conntrackd import MISSING, executable
from appliance.model.capability import Capability
from appliance.model.messages.problems import Finding, Path, Severity
from appliance.model.paths import Paths
from appliance.model.rules.machine_needs import needs, nftables_paths, notify_needs, shared_needs
from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.snapshot import Snapshot, SnapshotError
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.files import snapshots
from appliance.net.listening.bind_refusals import may_be_given
from appliance.net.listening.listeners import Listeners, ReservedBinds
from appliance.net.netlink.connection_room import connection_room
from appliance.net.netlink.links import Link, Links
from appliance.net.netlink.networks import interfaces
from appliance.net.nftables import flowtables, forwarding
from appliance.net.nftables.nftables import kernel_objection, unusable
from appliance.net.packets.frames import FrameSocket
from appliance.net.privileges import process_capabilities
from appliance.net.process import limits
from appliance.net.scripts.machine_needs import objection
from appliance.wire.ethernet import arp, neighbour_discovery
from appliance.wire.ethernet.arp import ArpError
from appliance.wire.ethernet.neighbour_discovery import NeighbourError

_WAIT: Final = 1.0
"""Seconds to wait for answers: RFC 5227 section 1.1 waits one to two (PROBE_MIN, PROBE_MAX)."""

_VIRTUAL_MAC: Final = {4: b"\x00\x00\x5e\x00\x01", 6: b"\x00\x00\x5e\x00\x02"}


def held_addresses(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield each virtual address that another machine has, with its hardware address.

    The answer may come from a router that rightly shares the address; so it is a warning.
    """
    if not snapshot.virtual_routers or not process_capabilities.has(Capability.CAP_NET_RAW):
        return
    with Links() as links:
        found = [(each, links.state(each.interface)) for each in snapshot.virtual_routers]
    for router, link in found:
        if link is not None and link.up and len(link.mac) == arp.MAC_BYTES:
            yield from _held(router, link)


def _held(router: VirtualRouter, link: Link) -> Iterator[Finding]:
    here = {str(ip_interface(each).ip) for each in link.addresses}
    wanted = [str(ip_interface(each).ip) for each in router.here]
    asked = [each for each in wanted if each not in here]
    if not asked:
        return
    with contextlib.suppress(OSError):  # an interface that has just been removed has no neighbours
        for address, mac in sorted(_answers(link, asked).items()):
            if mac == _VIRTUAL_MAC[router.family] + bytes([router.router_id]):
                continue  # a router of this virtual router has it, with the virtual MAC
            yield Finding(
                path=("virtual_ips", router.name, "addresses"),
                message=f"{address} is in use by {mac.hex(':')} on {link.name}: right where that is the"
                " router that it is shared with; otherwise take another address, or take it away there",
                severity=Severity.WARNING,
            )


def _answers(link: Link, addresses: list[str]) -> dict[str, bytes]:
    """Return the hardware addresses that answer for some addresses; raises OSError."""
    held: dict[str, bytes] = {}
    with FrameSocket.claims(link.name, addresses) as frames:
        for address in addresses:
            frames.send(_probe(link.mac, address))
        deadline = time.monotonic() + _WAIT
        while len(held) < len(addresses) and (left := deadline - time.monotonic()) > 0:
            select.select([frames], [], [], left)
            held |= dict(_claimed(frames.receive(), addresses))
    return held


def _probe(mac: bytes, address: str) -> bytes:
    if ":" in address:
        return neighbour_discovery.probe(mac, address)
    return arp.probe(mac, address)


def _claimed(frames: Iterable[bytes], addresses: list[str]) -> Iterator[tuple[str, bytes]]:
    for frame in frames:
        with contextlib.suppress(ArpError, NeighbourError):
            if ":" in addresses[0]:
                neighbour = neighbour_discovery.decode(frame)
                yield neighbour.target, neighbour.sender_mac
            else:
                packet = arp.decode(frame)
                yield packet.sender, packet.sender_mac


def sync_lacks(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield each `sync` that lacks conntrackd, at its frontend."""
    if executable() is None:
        for group, each in snapshot.forwarded:
            if each.sync:
                yield Finding(path=(group.name, "frontends", each.name, "sync"), message=MISSING)


def refused_binds(snapshot: Snapshot, paths: Paths) -> Iterator[Finding]:
    """Yield the addresses that cannot be bound here and now; ports of our own appliance are ours.

    Each is bound for a moment, as in a reload. A right that this user lacks and the appliance may have is a
    warning.
    """
    ours = _ports_of_ours(paths)
    for path, bind in wanted_binds(snapshot):
        if bind.port in ours:
            continue
        probe = Listeners()
        reserved = probe.reserve([bind], virtual=snapshot.virtual_addresses)
        if not isinstance(reserved, ReservedBinds):
            for each in reserved:
                severity = Severity.WARNING if may_be_given(each.reason) else Severity.ERROR
                yield Finding(path=path, message=str(each), severity=severity)
        probe.keep_only(())


def wanted_binds(snapshot: Snapshot) -> Iterator[tuple[Path, Bind]]:
    """Yield every address that a configuration listens on, with the path of its key."""
    for group in snapshot.groups:
        for frontend in group.frontends:
            for at, bind in enumerate(frontend.binds):
                yield (group.name, "frontends", frontend.name, "bind", at), bind
    if snapshot.stats:
        yield ("stats", "bind"), snapshot.stats.bind
        for at, bind in enumerate(snapshot.stats.more_binds):
            yield ("stats", "also_bind", at), bind


def _ports_of_ours(paths: Paths) -> frozenset[int]:
    """Return the ports of the appliance that runs with this runtime directory."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(paths.supervisor_socket))
        except PermissionError:
            pass  # a process listens: a user who may not connect may still read the accepted configuration
        except OSError:
            return frozenset()
    with contextlib.suppress(SnapshotError):
        accepted = snapshots.for_readers(paths)
        return frozenset(bind.port for _, bind in wanted_binds(accepted)) if accepted else frozenset()
    return frozenset()


def missing_rights(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield missing rights; those that only this user lacks are warnings: `appliance run` may have them."""
    yield from _capabilities(snapshot)
    yield from _open_files(snapshot)
    yield from _nftables(snapshot)


def _capabilities(snapshot: Snapshot) -> Iterator[Finding]:
    missing = process_capabilities.missing()
    if missing and snapshot.virtual_routers:
        yield Finding(
            path=("virtual_ips",),
            message=f"this user, {os.geteuid()}, has not {' and '.join(missing)}, without which no address"
            " can be held: start the appliance as root, by its unit, or in a container that has them",
            severity=Severity.WARNING,
        )


def _open_files(snapshot: Snapshot) -> Iterator[Finding]:
    files = limits.most_open_files()
    for group in snapshot.groups:
        lack = shortage(group, workers=group.workers or limits.processors(), open_files=files)
        if lack:
            yield Finding(
                path=(group.name,),
                message=f"each worker may open {lack.open_files} files here, enough for {lack.sessions}"
                f" connections of {lack.wanted}: raise the limit of open files (LimitNOFILE=, --ulimit"
                " nofile=, ulimit -n), or lower max_connections",
                severity=Severity.WARNING,
            )


def _nftables(snapshot: Snapshot) -> Iterator[Finding]:
    paths = nftables_paths(snapshot)
    if not paths:
        return
    why = unusable()
    if why is None and process_capabilities.has(Capability.CAP_NET_ADMIN):
        why = kernel_objection()
    if why:
        yield from (Finding(path=path, message=f"nftables cannot be used here: {why}") for path in paths)


def lacks(snapshot: Snapshot, paths: Paths) -> Iterator[Finding]:
    """Yield each unmet need; takes a second if the network is asked for virtual IPs."""
    commands = (*shared_needs(snapshot.shared_ips), *notify_needs(snapshot.notify))
    for need in (*needs(snapshot.virtual_routers), *commands):
        if why := objection(need):
            yield Finding(path=need.path, message=why)
    yield from _forwarding(snapshot)
    yield from unusable_files(snapshot)
    yield from missing_rights(snapshot)
    yield from linger_lacks(snapshot)
    yield from sync_lacks(snapshot)
    yield from announce_lacks(snapshot, paths)
    yield from _room(snapshot)
    yield from refused_binds(snapshot, paths)
    yield from held_addresses(snapshot)


def _room(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield a finding if the kernel's table of connections is nearly full, and the configuration needs it."""
    room = connection_room()
    if room is None or not room.short():
        return
    if snapshot.linger:
        yield Finding(path=("linger",), message=f"{room}: {ADVICE}")
    for group, frontend in snapshot.forwarded:
        yield Finding(path=(group.name, "frontends", frontend.name, "forward"), message=f"{room}: {ADVICE}")


def _forwarding(snapshot: Snapshot) -> Iterator[Finding]:
    for group, frontend in snapshot.forwarded:
        for why in forwarding.objections(families(snapshot, frontend)):
            yield Finding(path=(group.name, "frontends", frontend.name, "forward"), message=why)
        for why in flowtables.objections(families(snapshot, frontend), frontend.flowtable, interfaces()):
            yield Finding(path=(group.name, "frontends", frontend.name, "flowtable"), message=why)
