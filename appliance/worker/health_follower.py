"""Follows the health board: verdicts of `health` reach the pools of this worker at the next tick."""

from collections.abc import Callable, Mapping
from pathlib import Path

from appliance.core.balancing.pool_queue import Waiter
from appliance.core.balancing.pool_state import Health, LostMembers
from appliance.model.end_reasons import EndReason
from appliance.net.boards.board_content import BoardFollower
from appliance.wire.boards.health_board import VerdictReader, Verdicts
from appliance.worker.relay.all_sessions import Traffic
from appliance.worker.relay.backend import Backend
from appliance.worker.relay.session.session import Session
from appliance.worker.relay.session.session_phases import OPEN


def follow(
    traffic: Traffic,
    backend: Backend,
    lost: LostMembers,
    *,
    leaves: Callable[[Waiter], bool] | None = None,
) -> None:
    """Let the sessions of a pool follow a change of its servers.

    Those that `leaves` names keep waiting: they are about to move to a newer worker, after the sessions that
    have moved there, whose places look free here and are not.
    """
    _leave_lost_servers(traffic, backend, lost)
    for session in backend.pool.dequeue_all(but=leaves):
        session.place_free()


def _leave_lost_servers(traffic: Traffic, backend: Backend, lost: LostMembers) -> None:
    """Apply `on_down` and `on_up`; a session that is not connected yet connects elsewhere in any case."""
    if not lost.down and not lost.closing and not lost.relieved:
        return
    pending = {*lost.down, *lost.closing}
    for session in tuple(traffic.live):
        if not isinstance(session, Session) or session.backend is not backend:
            continue
        if session.member in (lost.closing if session.phase == OPEN else pending):
            session.leave_server(EndReason.SERVER_DOWN)
        elif session.member in lost.relieved:
            session.leave_server(EndReason.SERVER_UP)


class HealthFollower:
    """Reads the board at `path` for this worker's `backends`; `leaves` is as in `follow`."""

    def __init__(
        self,
        path: Path,
        traffic: Traffic,
        backends: Mapping[str, Backend],
        *,
        leaves: Callable[[Waiter], bool],
        fault: Callable[[Exception], None],
    ) -> None:
        self._traffic, self._backends, self._leaves, self._fault = traffic, backends, leaves, fault
        self._board = BoardFollower(path, VerdictReader())
        self._given: Verdicts = {}

    def forget(self) -> None:
        """Give the pools all records again at the next read: there are new pools."""
        self._board.forget()
        self._given = {}

    @property
    def has_news(self) -> bool:
        """Return whether `look` has something to give to the pools."""
        return self._board.is_changed

    def look(self) -> None:
        """Give verdicts to each pool where one has changed since the last read, or where sessions wait.

        The worker calls it on each tick. Without a board servers stay as they are: `health` publishes as soon
        as it can.
        """
        board = self._board.changed()
        if board is None:
            return
        before, self._given = self._given, board
        for name, backend in self._backends.items():
            if backend.pool.queued or name not in before or board.get(name) != before[name]:
                self._observe(backend, board.get(name, {}))

    def _observe(self, backend: Backend, verdicts: Health) -> None:
        try:
            lost = backend.pool.observe(verdicts)
            follow(self._traffic, backend, lost, leaves=self._leaves)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug in one pool costs no other its news
            self._fault(error)
