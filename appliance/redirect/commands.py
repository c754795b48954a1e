"""What `redirect` answers on its control socket: to `reload`, to proxies that stop, and to who asks."""

import os
import time
from collections.abc import Mapping
from typing import Final

from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.control.control_server import Call, Handler
from appliance.net.files.proposed_snapshot import ProposedSnapshot
from appliance.redirect.redirector import PROGRAM, Redirector
from appliance.wire.lines import redirect_status
from appliance.wire.lines.control import Answer, good
from appliance.wire.lines.redirect_status import RedirectStatus

FOR_READERS: Final = frozenset({"status"})
"""Commands that the members of `group:` may use, too."""


class RedirectCommands:
    """The commands. Each may be repeated: `reload` does so after a time-out or a crash of its own."""

    def __init__(self, paths: Paths, redirector: Redirector) -> None:
        self._redirector = redirector
        self._started_at = time.time()
        self._proposed = ProposedSnapshot(paths)

    def handlers(self) -> Mapping[str, Handler]:
        """Return the commands by their names."""
        return {
            "status": self._status,
            "prepare": self._prepare,
            "commit": self._commit,
            "abort": self._abort,
            "withdraw": self._withdraw,
        }

    def _status(self, _: Call) -> Answer:
        redirector = self._redirector
        status = RedirectStatus(
            program=PROGRAM,
            pid=os.getpid(),
            started_at=self._started_at,
            snapshot=redirector.snapshot.number if redirector.snapshot else 0,
            pending=self._proposed.number,
            trouble=redirector.trouble,
            owned=redirector.rules.owned,
            guarded=redirector.rules.guarded,
            redirects=redirector.statuses(),
        )
        return good(**redirect_status.encode(status))

    def _prepare(self, call: Call) -> Answer:
        """Read a proposed snapshot; nothing changes yet. The kernel's rules are made as looks want them."""
        snapshot = self._proposed.read(call.question.integer("snapshot"))
        self._proposed.hold(snapshot)
        return good(changed=_redirects(snapshot) != _redirects(self._redirector.snapshot), generation=None)

    def _commit(self, call: Call) -> Answer:
        """Apply a snapshot; one that was prepared by an earlier process is read again."""
        number = call.question.integer("snapshot")
        ours = self._redirector.snapshot
        if ours is None or ours.number != number:
            self._redirector.apply(self._proposed.take(number))
        return good(snapshot=number)

    def _abort(self, call: Call) -> Answer:
        """Forget a snapshot that was prepared."""
        self._proposed.forget(call.question.integer("snapshot"))
        return good()

    def _withdraw(self, call: Call) -> Answer:
        """Take the rules away that lead to a proxy which is about to stop accepting."""
        self._redirector.withdraw(call.question.text("program"))
        return good()


def _redirects(snapshot: Snapshot | None) -> object:
    if snapshot is None:
        return None
    return [
        (group.name, each.name, each.redirect, each.binds, each.pool, each.needs)
        for group in snapshot.groups
        for each in group.frontends
        if each.redirect
    ]
