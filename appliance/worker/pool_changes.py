"""The effect of changed servers on sessions: they leave lost servers, and waiting ones try again."""

from collections.abc import Callable

from appliance.core.balancing.pool_queue import Waiter
from appliance.core.balancing.pool_state import LostMembers
from appliance.worker.relay.backend import Backend
from appliance.worker.relay.session.session import Session
from appliance.worker.relay.session.session_phases import OPEN
from appliance.worker.relay.traffic import Traffic


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
    """Apply `on_down`; a session without a connection to the server yet connects elsewhere in any case."""
    if not lost.down and not lost.closing:
        return
    pending = {*lost.down, *lost.closing}
    for session in tuple(traffic.live):
        if not isinstance(session, Session) or session.backend is not backend:
            continue
        if session.member in (lost.closing if session.phase == OPEN else pending):
            session.server_down()
