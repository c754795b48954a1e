"""What `redirect` answers on its control socket: `reload`, proxies that stop, and queries."""

from collections.abc import Mapping

from appliance.model.paths import Paths
from appliance.model.program_names import REDIRECT
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.control.common_commands import ReloadCommands
from appliance.net.control.control_server import Call, Handler
from appliance.redirect.redirector import Redirector
from appliance.wire.lines.control import Answer, good
from appliance.wire.lines.redirect_status import RedirectStatus


class RedirectCommands(ReloadCommands):
    """The commands by their names; those of a reload are in `ReloadCommands`."""

    def __init__(self, paths: Paths, redirector: Redirector) -> None:
        self._redirector = redirector
        super().__init__(
            REDIRECT,
            paths,
            applied=lambda: redirector.snapshot,
            apply=redirector.apply,
            differs=lambda proposed, applied: _used(proposed) != _used(applied),
        )

    def handlers(self) -> Mapping[str, Handler]:
        """Return the commands by their names."""
        return {
            **super().handlers(),
            "withdraw": self._withdraw,
        }

    def status(self) -> object:
        """Return the answer to `status`."""
        redirector = self._redirector
        return RedirectStatus(
            **self.head(),
            trouble=redirector.trouble,
            owned=redirector.rules.owned,
            guarded=redirector.rules.guarded,
            redirects=redirector.statuses(),
        )

    def _withdraw(self, call: Call) -> Answer:
        """Remove the rules that redirect to a proxy which is about to stop accepting."""
        self._redirector.withdraw(call.question.text("program"))
        return good()


def _used(snapshot: Snapshot) -> object:
    """Return the part of a snapshot that this program uses."""
    return [
        (group.name, each.name, each.redirect, each.binds, each.pool, each.needs)
        for group in snapshot.groups
        for each in group.frontends
        if each.redirect
    ]
