"""Those who must know which node has a connection: `linger`, and the kernel."""

from collections.abc import Sequence
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.core.migration.ruleset import Ends
from appliance.migrate.given_ports import GivenPorts
from appliance.model.paths import Paths
from appliance.model.program_names import LINGER
from appliance.net.control.control_client import ControlClient, ControlUnavailable
from appliance.net.netlink.conntrack import Conntrack, Flow
from appliance.wire.lines import owner_change
from appliance.wire.lines.control import Question
from appliance.wire.lines.owner_change import OwnerChange

_PATIENCE: Final = 1.0


class Owners:
    """Connections to `linger` and to the kernel's table, opened when they are needed, and `given` ports."""

    def __init__(self, paths: Paths, log: FilteringBoundLogger) -> None:
        self._path = paths.control(LINGER)
        self._log = log
        self._linger: ControlClient | None = None
        self._conntrack: Conntrack | None = None
        self.given = GivenPorts(paths, log)

    def came(self, ends: Sequence[Ends]) -> bool:
        """Make packets of these connections this node's own; return whether that succeeded."""
        self.given.take_back(ends)
        return self._change(OwnerChange(ours=tuple(ends)))

    def left(self, ends: Sequence[Ends], *, servers: Sequence[Ends]) -> None:
        """Forget connections that another node has now: late packets are forwarded to it.

        No connect uses the ports of those to `servers`.
        """
        self.given.give(servers)
        self._change(OwnerChange(others=tuple(ends)))
        try:
            if self._conntrack is None:
                self._conntrack = Conntrack()
            self._conntrack.forget_flows([_flow(each) for each in ends])
        except OSError as error:
            self._log.error("session-move-failed", reason=f"conntrack: {error.strerror or error}")

    def close(self) -> None:
        """Close the connections."""
        self.given.close()
        if self._linger is not None:
            self._linger.close()
        if self._conntrack is not None:
            self._conntrack.close()

    def _change(self, change: OwnerChange) -> bool:
        question = Question(command="change-owner", values=owner_change.values(change))
        try:
            if self._linger is None or self._linger.closed.is_set():
                self._linger = ControlClient(self._path, timeout=_PATIENCE)
            answer = self._linger.ask(question, timeout=_PATIENCE)
        except ControlUnavailable as error:
            self._log.warning("session-move-failed", reason=str(error))
            return False
        if not answer.ok:
            self._log.warning("session-move-failed", reason=answer.reason)
        return answer.ok


def _flow(ends: Ends) -> Flow:
    return Flow(source=ends[0], source_port=ends[1], destination=ends[2], destination_port=ends[3])
