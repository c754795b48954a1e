"""The commands of `discover` on its control socket: for `reload`, and for its status."""

from appliance.discovery.service import DiscoverService
from appliance.discovery.watched_source import WatchedSource
from appliance.model.paths import Paths
from appliance.model.program_names import DISCOVER
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.control.common_commands import ReloadCommands
from appliance.wire.lines.discovery_status import DiscoveryStatus, FoundStatus, SourceStatus


class DiscoverCommands(ReloadCommands):
    """The commands by their names; those of a reload are in `ReloadCommands`."""

    def __init__(self, paths: Paths, program: DiscoverService) -> None:
        self._discovery = program
        # No snapshot can fail here, whatever the API's state.
        super().__init__(DISCOVER, paths, applied=lambda: program.snapshot, apply=program.apply)

    def status(self) -> object:
        """Return the answer to `status`."""
        program = self._discovery
        return DiscoveryStatus(
            **self.head(),
            installed=program.found.installed,
            sources=tuple(_source(each, program.snapshot) for each in program.sources),
            problems=program.problems(),
            not_kept=program.delivery.not_kept,
        )


def _source(watched: WatchedSource, snapshot: Snapshot | None) -> SourceStatus:
    members, source = watched.members, watched.source
    pools = snapshot.pools if snapshot else ()
    return SourceStatus(
        name=str(source),
        pools=tuple(each.name for each in pools if each.discover and each.discover.source == source),
        servers=tuple(
            FoundStatus(name=each.name, host=each.host, held=each.name in members.held)
            for each in members.found.servers
        ),
        seen_at=watched.seen_at,
        changed_at=members.found.changed_at or None,
        hold=members.hold.value if members.hold else None,
        proxy=members.found.proxy,
        resources=tuple(each.status() for each in watched.resources.values()),
    )
