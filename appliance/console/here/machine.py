"""All that a configuration without errors needs of this machine, and that it lacks."""

from collections.abc import Iterator

from appliance.console.here.address_holders import held_addresses
from appliance.console.here.binds import refused_binds
from appliance.console.here.files import unusable_files
from appliance.console.here.lingering import linger_lacks
from appliance.console.here.rights import missing_rights
from appliance.core.forwarding.plan import families
from appliance.model.messages.problems import Finding
from appliance.model.paths import Paths
from appliance.model.rules.machine_needs import needs, notify_needs
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.commands.machine_needs import objection
from appliance.net.netlink.networks import interfaces
from appliance.net.nftables import flowtables, forwarding


def lacks(snapshot: Snapshot, paths: Paths) -> Iterator[Finding]:
    """Yield each need that is not met; takes a second where virtual IPs are asked for on the network."""
    for need in (*needs(snapshot.virtual_routers), *notify_needs(snapshot.notify)):
        if why := objection(need):
            yield Finding(path=need.path, message=why)
    yield from _forwarding(snapshot)
    yield from unusable_files(snapshot)
    yield from missing_rights(snapshot)
    yield from linger_lacks(snapshot)
    yield from refused_binds(snapshot, paths)
    yield from held_addresses(snapshot)


def _forwarding(snapshot: Snapshot) -> Iterator[Finding]:
    for group, frontend in snapshot.forwarded:
        for why in forwarding.objections(families(snapshot, frontend)):
            yield Finding(path=(group.name, "frontends", frontend.name, "forward"), message=why)
        for why in flowtables.objections(families(snapshot, frontend), frontend.flowtable, interfaces()):
            yield Finding(path=(group.name, "frontends", frontend.name, "flowtable"), message=why)
