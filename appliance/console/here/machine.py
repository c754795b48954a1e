"""All that a configuration without errors needs of this machine, and that it lacks."""

from collections.abc import Iterator

from appliance.console.here.address_holders import held_addresses
from appliance.console.here.binds import refused_binds
from appliance.console.here.files import unusable_files
from appliance.console.here.lingering import linger_lacks
from appliance.console.here.rights import missing_rights
from appliance.core.forwarding.plan import families
from appliance.core.status.connection_room import ADVICE
from appliance.model.messages.problems import Finding
from appliance.model.paths import Paths
from appliance.model.rules.machine_needs import needs, notify_needs
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.netlink.connection_room import connection_room
from appliance.net.netlink.networks import interfaces
from appliance.net.nftables import flowtables, forwarding
from appliance.net.scripts.machine_needs import objection


def lacks(snapshot: Snapshot, paths: Paths) -> Iterator[Finding]:
    """Yield each need that is not met; takes a second where virtual IPs are asked for on the network."""
    for need in (*needs(snapshot.virtual_routers), *notify_needs(snapshot.notify)):
        if why := objection(need):
            yield Finding(path=need.path, message=why)
    yield from _forwarding(snapshot)
    yield from unusable_files(snapshot)
    yield from missing_rights(snapshot)
    yield from linger_lacks(snapshot)
    yield from _room(snapshot)
    yield from refused_binds(snapshot, paths)
    yield from held_addresses(snapshot)


def _room(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield that the kernel's table of connections is nearly full, where this configuration needs it."""
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
