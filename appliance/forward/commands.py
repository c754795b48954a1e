"""What `forward` answers on its control socket: the commands of `reload`, and queries."""

from collections.abc import Iterator, Mapping
from typing import Final

from appliance.core.forwarding.plan import families, forwarded
from appliance.forward.conntrackd import MISSING, executable
from appliance.forward.counting import Counting
from appliance.forward.forwarder import Forwarder
from appliance.forward.sessions import ForwardedSessions
from appliance.model.paths import Paths
from appliance.model.program_names import FORWARD
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.snapshot.sync import synced_routers
from appliance.net.control.common_commands import ReloadCommands
from appliance.net.control.control_server import Handler
from appliance.net.netlink.networks import interfaces
from appliance.net.nftables.flowtables import objections
from appliance.wire.lines.control import AnswerProblem
from appliance.wire.lines.forward_status import ForwardStatus

FOR_READERS: Final = frozenset({"status", "sessions"})
"""Commands that members of `group:` may also use."""


class ForwardCommands(ReloadCommands):
    """The commands by their names; those of a reload are in `ReloadCommands`."""

    def __init__(self, paths: Paths, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        self._counting = Counting(forwarder)
        self._sessions = ForwardedSessions(forwarder)
        super().__init__(
            FORWARD,
            paths,
            applied=lambda: forwarder.snapshot,
            apply=self._apply_beside_sessions,
            differs=lambda proposed, applied: _used(proposed) != _used(applied),
            objections=lambda proposed: (*_without_flowtable(proposed), *_without_conntrackd(proposed)),
        )

    def handlers(self) -> Mapping[str, Handler]:
        """Return the commands by their names."""
        return {
            **super().handlers(),
            "sessions": lambda _: self._sessions.listing(),
            "kill": lambda call: self._sessions.kill(call.question),
        }

    def status(self) -> object:
        """Return the answer to `status`."""
        forwarder = self._forwarder
        groups, servers = self._counting.counts()
        return ForwardStatus(
            **self.head(),
            trouble=forwarder.trouble,
            groups=groups,
            servers=servers,
            sync=forwarder.syncing.status(),
        )

    def _apply_beside_sessions(self, snapshot: Snapshot) -> None:
        """Apply a snapshot; servers that it no longer has are still named in answers to `sessions`."""
        self._sessions.learn()
        self._forwarder.apply(snapshot)
        self._sessions.learn()


def _without_flowtable(snapshot: Snapshot) -> Iterator[AnswerProblem]:
    for group, frontend in snapshot.forwarded:
        path = f"{group.name}.frontends.{frontend.name}.flowtable"
        for why in objections(families(snapshot, frontend), frontend.flowtable, interfaces()):
            yield AnswerProblem(message=why, path=path)


def _without_conntrackd(snapshot: Snapshot) -> Iterator[AnswerProblem]:
    if executable() is None:
        for group, frontend in snapshot.forwarded:
            if frontend.sync:
                path = f"{group.name}.frontends.{frontend.name}.sync"
                yield AnswerProblem(message=MISSING, path=path)


def _used(snapshot: Snapshot) -> object:
    """Return the part of a snapshot that the rules are made of."""
    frontends, routers = forwarded(snapshot), synced_routers(snapshot)
    return frontends, routers, [snapshot.pool(each.config.pool or "") for each in frontends]
