"""The line that `log.connections` writes for each connection, with HAProxy's meanings."""

from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.core.termination import Stage, termination
from appliance.net.relay import OPEN, QUEUED, Session
from appliance.wire import sockaddr
from appliance.wire.worker_board import Reason

_STAGES: Final = {QUEUED: Stage.QUEUE, OPEN: Stage.DATA}


class ConnectionLog:
    """Writes the event `connection`; times are seconds, -1.0 for a phase that was not reached."""

    def __init__(self, logger: FilteringBoundLogger) -> None:
        self._log = logger

    def __call__(self, session: Session, reason: Reason) -> None:
        """Log a session that ends now."""
        queued, connected = session.waits()
        server = session.server
        self._log.info(
            "connection",
            frontend=session.frontend.name,
            client=sockaddr.text(session.address),
            pool=session.backend.pool.config.name,
            server=session.member.name if session.member is not None else None,
            reason=reason.value,
            termination=termination(reason, _STAGES.get(session.phase, Stage.CONNECT)),
            queue_s=queued,
            connect_s=connected,
            total_s=round(session.traffic.now - session.started, 3),
            bytes_in=session.client.count,
            bytes_out=server.count if server is not None else 0,
            retries=session.attempts,
        )
