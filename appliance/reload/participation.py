"""Whether this node takes part in its virtual routers: the line `stop` ends that until the next `reload`.

The wish is noted in a file first, so that a `vrrp` that is down follows it when it starts. A running one gets
the command, and gets it again until it has answered.
"""

from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.core.programs import needed
from appliance.model.paths import Paths
from appliance.model.program_names import VRRP
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files import stopped_virtual_ips
from appliance.reload.program_clients import ProgramClients, ProgramDown
from appliance.reload.program_outcomes import failures_of
from appliance.wire.lines.control import Answer, AnswerProblem, bad, good

TAKE_PART: Final = "take-part"
"""Command to `vrrp`: `wanted` true or false."""


class Participation:
    """Whether the node should take part, and whether `vrrp` knows that."""

    def __init__(self, paths: Paths, clients: ProgramClients, log: FilteringBoundLogger) -> None:
        self._paths = paths
        self._clients = clients
        self._log = log
        self._is_told = False  # an earlier process may have been killed before it sent the command

    def stop(self, accepted: Snapshot) -> Answer:
        """Have `vrrp` leave all virtual IPs to other nodes, in order."""
        if VRRP not in needed(accepted):
            return bad("there are no virtual IPs to stop")
        if not stopped_virtual_ips.are_stopped(self._paths):  # dynkeepalived sends it every five seconds
            try:
                stopped_virtual_ips.note_stop(self._paths)
            except OSError as error:
                return bad(str(error))
            self._log.info("virtual-ips-stopped", names=[each.name for each in accepted.virtual_routers])
        problem = self._tell()
        return bad(problem) if problem else good(stopped=[each.name for each in accepted.virtual_routers])

    def resume(self) -> list[AnswerProblem]:
        """End a stop, if there is one; return what failed."""
        if not stopped_virtual_ips.are_stopped(self._paths):
            return []
        try:
            stopped_virtual_ips.forget_stop(self._paths)
        except OSError as error:
            return [AnswerProblem(message=str(error))]
        self._log.info("virtual-ips-resumed")
        problem = self._tell()
        return [problem] if problem else []

    def converge(self, accepted: Snapshot) -> None:
        """Send `vrrp` a command again that it has not answered."""
        if not self._is_told and VRRP in needed(accepted):
            self._tell()

    def _tell(self) -> AnswerProblem | None:
        wanted = not stopped_virtual_ips.are_stopped(self._paths)
        outcome = self._clients.tell(VRRP, TAKE_PART, wanted=wanted)
        # If it is down it reads the note at its start; it may also have read it just before this change.
        self._is_told = isinstance(outcome, Answer) and outcome.ok
        if isinstance(outcome, ProgramDown):
            return None
        return next(iter(failures_of(VRRP, outcome)), None)
