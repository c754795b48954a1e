"""What `forward` answers on its control socket: to `reload`, and to who asks."""

import os
import time
from collections.abc import Iterator, Mapping
from typing import Final

from appliance.core.forwarding.plan import families, forwarded
from appliance.core.rollout.needed_programs import FORWARD
from appliance.forward.counting import Counting
from appliance.forward.forwarder import Forwarder
from appliance.forward.sessions import ForwardedSessions
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.control.control_server import Call, Handler
from appliance.net.files.proposed_snapshot import ProposedSnapshot
from appliance.net.netlink.networks import interfaces
from appliance.net.nftables.flowtables import objections
from appliance.wire.lines import forward_status
from appliance.wire.lines.control import Answer, AnswerProblem, bad, good
from appliance.wire.lines.forward_status import ForwardStatus

FOR_READERS: Final = frozenset({"status", "sessions"})
"""Commands that the members of `group:` may use, too."""


class ForwardCommands:
    """The commands. Each may be repeated: `reload` does so after a time-out or a crash of its own."""

    def __init__(self, paths: Paths, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        self._counting = Counting(forwarder)
        self._sessions = ForwardedSessions(forwarder)
        self._started_at = time.time()
        self._proposed = ProposedSnapshot(paths)

    def handlers(self) -> Mapping[str, Handler]:
        """Return the commands by their names."""
        return {
            "status": self._status,
            "prepare": self._prepare,
            "commit": self._commit,
            "abort": self._abort,
            "sessions": lambda _: self._sessions.listing(),
            "kill": lambda call: self._sessions.kill(call.question),
        }

    def _status(self, _: Call) -> Answer:
        forwarder = self._forwarder
        groups, servers = self._counting.counts()
        status = ForwardStatus(
            program=FORWARD,
            pid=os.getpid(),
            started_at=self._started_at,
            snapshot=forwarder.snapshot.number if forwarder.snapshot else 0,
            pending=self._proposed.number,
            trouble=forwarder.trouble,
            groups=groups,
            servers=servers,
        )
        return good(**forward_status.encode(status))

    def _prepare(self, call: Call) -> Answer:
        """Read a proposed snapshot, and see whether its flowtables can be had; nothing changes yet."""
        snapshot = self._proposed.read(call.question.integer("snapshot"))
        if refused := tuple(_without_flowtable(snapshot)):
            return bad(*refused)
        self._proposed.hold(snapshot)
        return good(changed=_used(snapshot) != _used(self._forwarder.snapshot), generation=None)

    def _commit(self, call: Call) -> Answer:
        """Apply a snapshot; one that was prepared by an earlier process is read again."""
        number = call.question.integer("snapshot")
        ours = self._forwarder.snapshot
        if ours is None or ours.number != number:
            self._sessions.learn()
            self._forwarder.apply(self._proposed.take(number))
            self._sessions.learn()
        return good(snapshot=number)

    def _abort(self, call: Call) -> Answer:
        """Forget a snapshot that was prepared."""
        self._proposed.forget(call.question.integer("snapshot"))
        return good()


def _without_flowtable(snapshot: Snapshot) -> Iterator[AnswerProblem]:
    for group, frontend in snapshot.forwarded:
        path = f"{group.name}.frontends.{frontend.name}.flowtable"
        for why in objections(families(snapshot, frontend), frontend.flowtable, interfaces()):
            yield AnswerProblem(message=why, path=path)


def _used(snapshot: Snapshot | None) -> object:
    """Return what of a snapshot the rules are made of."""
    if snapshot is None:
        return None
    frontends = forwarded(snapshot)
    return frontends, [snapshot.pool(each.config.pool or "") for each in frontends]
