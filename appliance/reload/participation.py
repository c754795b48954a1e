"""Whether this node takes part in virtual IPs and shared addresses: the line `stop` ends that until `reload`.

The wish is noted in a file first, so that a `vrrp` or `announce` that is down follows it when it starts. A
running one gets the command, and gets it again until it has answered.
"""

from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.core.program_table import needed
from appliance.model.paths import Paths
from appliance.model.program_names import ANNOUNCE, VRRP
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files import stopped_virtual_ips
from appliance.reload.convergence import failures_of
from appliance.reload.program_clients import ProgramClients, ProgramDown
from appliance.wire.lines.control import Answer, AnswerProblem, bad, good

TAKE_PART: Final = "take-part"
"""Command to `vrrp` and `announce`: `wanted` true or false."""

_TAKING_PART: Final = (ANNOUNCE, VRRP)


class Participation:
    """Whether the node should take part, and whether the programs know that."""

    def __init__(self, paths: Paths, clients: ProgramClients, log: FilteringBoundLogger) -> None:
        self._paths = paths
        self._clients = clients
        self._log = log
        self._is_told = False  # an earlier process may have been killed before it sent the command

    def stop(self, accepted: Snapshot) -> Answer:
        """Leave all virtual IPs and shared addresses to other nodes, in order."""
        if not self._programs(accepted):
            return bad("there are no virtual IPs to stop")
        routers = [each.name for each in accepted.virtual_routers]
        names = [*routers, *(each.name for each in accepted.shared_ips)]
        if not stopped_virtual_ips.are_stopped(self._paths):  # dynkeepalived sends it every five seconds
            try:
                stopped_virtual_ips.note_stop(self._paths)
            except OSError as error:
                return bad(str(error))
            self._log.info("virtual-ips-stopped", names=names)
        problems = self._order(accepted)
        return bad(*problems) if problems else good(stopped=names)

    def resume(self, accepted: Snapshot) -> list[AnswerProblem]:
        """End a stop, if there is one; return what failed."""
        if not stopped_virtual_ips.are_stopped(self._paths):
            return []
        try:
            stopped_virtual_ips.forget_stop(self._paths)
        except OSError as error:
            return [AnswerProblem(message=str(error))]
        self._log.info("virtual-ips-resumed")
        return self._order(accepted)

    def converge(self, accepted: Snapshot) -> None:
        """Send a command again that has not been answered."""
        if not self._is_told and self._programs(accepted):
            self._order(accepted)

    def _programs(self, accepted: Snapshot) -> tuple[str, ...]:
        return tuple(each for each in needed(accepted) if each in _TAKING_PART)

    def _order(self, accepted: Snapshot) -> list[AnswerProblem]:
        wanted = not stopped_virtual_ips.are_stopped(self._paths)
        programs = self._programs(accepted)
        outcomes = {each: self._clients.order(each, TAKE_PART, wanted=wanted) for each in programs}
        # If one is down it reads the note at its start; it may also have read it just before this change.
        self._is_told = all(isinstance(each, Answer) and each.ok for each in outcomes.values())
        answered = ((name, each) for name, each in outcomes.items() if not isinstance(each, ProgramDown))
        return [problem for name, each in answered for problem in failures_of(name, each)]
