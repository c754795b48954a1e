"""Everything that a configuration without errors needs and this machine lacks."""

import os
from collections.abc import Iterator

from appliance.console.here.announcing import announce_lacks
from appliance.console.here.binds import refused_binds
from appliance.console.here.claimed_addresses import held_addresses
from appliance.console.here.files import unusable_files
from appliance.console.here.lingering import linger_lacks
from appliance.core.balancing.worker_shares import shortage
from appliance.core.forwarding.plan import families
from appliance.core.status.connection_room import ADVICE
from appliance.forward.conntrackd import MISSING, executable
from appliance.model.capability import Capability
from appliance.model.messages.problems import Finding, Severity
from appliance.model.paths import Paths
from appliance.model.rules.machine_needs import needs, nftables_paths, notify_needs, shared_needs
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.netlink.connection_room import connection_room
from appliance.net.netlink.networks import interfaces
from appliance.net.nftables import flowtables, forwarding
from appliance.net.nftables.nftables import kernel_objection, unusable
from appliance.net.privileges import process_capabilities
from appliance.net.process import limits
from appliance.net.scripts.machine_needs import objection


def sync_lacks(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield each `sync` that lacks conntrackd, at its frontend."""
    if executable() is None:
        for group, each in snapshot.forwarded:
            if each.sync:
                yield Finding(path=(group.name, "frontends", each.name, "sync"), message=MISSING)


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
