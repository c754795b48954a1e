"""The line that `log.connections` writes for each connection, with HAProxy's meanings."""

from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.core.balancing.termination_state import ConnectionStage, termination
from appliance.model.end_reasons import EndReason
from appliance.net.logging.line_limiter import unfiltered
from appliance.wire import sockaddr
from appliance.worker.relay.session.session import Session
from appliance.worker.relay.session.session_phases import OPEN, QUEUED

_STAGES: Final = {QUEUED: ConnectionStage.QUEUE, OPEN: ConnectionStage.DATA}


class ConnectionLog:
    """Writes the event `connection`, whatever the level of the other lines is.

    Times are seconds, -1.0 for a phase that was not reached: `queue_s` until the first connect began,
    `connect_s` from there with all retries. `server` is the last one that was tried.
    """

    def __init__(self, logger: FilteringBoundLogger) -> None:
        self._log = unfiltered(logger)

    def __call__(self, session: Session, reason: EndReason) -> None:
        """Log a session that ends now; the session calls it once, before its sides are closed."""
        queued, connected = session.waits()
        server, member = session.server, session.member
        if member is None and session.tried:
            member = session.tried[-1]
        self._log.info(
            "connection",
            frontend=session.frontend.name,
            client=sockaddr.text(session.address),
            pool=session.backend.pool.config.name,
            server=member.name if member is not None else None,
            reason=reason.value,
            termination=termination(reason, _STAGES.get(session.phase, ConnectionStage.CONNECT)),
            queue_s=queued,
            connect_s=connected,
            total_s=round(session.traffic.now - session.started, 3),
            bytes_in=session.client.count,
            bytes_out=server.count if server is not None else 0,
            retries=session.attempts,
        )
