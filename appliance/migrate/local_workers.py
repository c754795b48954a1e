"""Gives sessions to a worker of this node: those of another node, or those that could not move there."""

from collections.abc import Sequence
from typing import Final

from appliance.model.paths import Paths
from appliance.model.worker_phases import WorkerPhase
from appliance.net.boards.worker_boards import worker_boards
from appliance.net.control.control_client import ControlClient, ControlUnavailable
from appliance.wire.boards.worker_board import WorkerBoard
from appliance.wire.lines import moving_sessions
from appliance.wire.lines.control import ControlError, Question
from appliance.wire.lines.moving_sessions import MovingSession, Taken

_PATIENCE: Final = 1.5
"""Seconds for an answer; the other node waits for ours meanwhile."""


def accepting(paths: Paths, program: str) -> list[WorkerBoard]:
    """Return the boards of the program's workers that accept, those with few sessions first."""
    found = worker_boards(paths.runtime, program)
    serving = [each for each in found if each.phase is WorkerPhase.ACCEPTING]
    return sorted(serving, key=lambda each: each.sessions)


class WorkerOffer:
    """Sessions that a worker has been offered. `refused` has for each "" or why it has no place there.

    The constructor and `take` raise ControlUnavailable and ControlError.
    """

    def __init__(
        self,
        paths: Paths,
        program: str,
        sessions: Sequence[MovingSession],
        descriptors: Sequence[int],
    ) -> None:
        serving = accepting(paths, program)
        if not serving:
            raise ControlUnavailable(f"no worker of {program} accepts")
        board = serving[0]
        path = paths.worker_control(program, board.generation, board.index)
        self._client = ControlClient(path, timeout=_PATIENCE)
        try:
            self.refused = self._offer(sessions, descriptors)
        except BaseException:
            self._client.close()
            raise

    def take(self, places: Sequence[int]) -> None:
        """Make the sessions at these positions the worker's; the others are dropped there."""
        try:
            answer = self._client.ask(
                Question(command="take", values=moving_sessions.values(Taken(places=tuple(places)))),
                timeout=_PATIENCE,
            )
        finally:
            self.close()
        if not answer.ok:
            raise ControlError(answer.reason)

    def close(self) -> None:
        """End the offer: the worker drops what it has not taken."""
        self._client.close()

    def _offer(self, sessions: Sequence[MovingSession], descriptors: Sequence[int]) -> tuple[str, ...]:
        offer = moving_sessions.offer_of(tuple(sessions))
        answer = self._client.ask(
            Question(command="offer", values=moving_sessions.values(offer)),
            timeout=_PATIENCE,
            descriptors=descriptors,
        )
        return moving_sessions.refusals(answer, len(sessions))
