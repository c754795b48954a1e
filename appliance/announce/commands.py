"""What `announce` answers on its control socket: the commands of `reload`, and queries."""

from collections.abc import Mapping

from appliance.announce.announcer import Announcer
from appliance.model.paths import Paths
from appliance.model.program_names import ANNOUNCE
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.control.common_commands import ReloadCommands
from appliance.net.control.control_server import Call, Handler
from appliance.wire.lines.announce_status import AnnounceStatus
from appliance.wire.lines.control import Answer, good


class AnnounceCommands(ReloadCommands):
    """The commands by their names; those of a reload are in `ReloadCommands`."""

    def __init__(self, paths: Paths, announcer: Announcer) -> None:
        self._announcer = announcer
        super().__init__(
            ANNOUNCE,
            paths,
            applied=lambda: announcer.snapshot,
            apply=announcer.apply,
            differs=lambda proposed, applied: _used(proposed) != _used(applied),
            objections=announcer.objections,
        )

    def handlers(self) -> Mapping[str, Handler]:
        """Return the commands by their names."""
        return {
            **super().handlers(),
            "take-part": self._take_part,
        }

    def status(self) -> object:
        """Return the answer to `status`."""
        announcer = self._announcer
        bgp = announcer.snapshot.bgp if announcer.snapshot else None
        return AnnounceStatus(
            **self.head(),
            trouble=announcer.trouble,
            engine=bgp.engine.value if bgp else "",
            addresses=announcer.shared_statuses(),
            neighbors=announcer.neighbors.statuses,
        )

    def _take_part(self, call: Call) -> Answer:
        """Leave the addresses to other nodes, or take part again."""
        self._announcer.take_part(wanted=call.question.flag("wanted"))
        return good()


def _used(snapshot: Snapshot) -> object:
    """Return the part of a snapshot that this program uses."""
    return snapshot.shared_ips, snapshot.bgp
