"""The timeouts of an open session: HAProxy's `timeout client`, `client-fin` and so on."""

from appliance.core.balancing.frontend_state import FrontendState
from appliance.model.end_reasons import EndReason
from appliance.worker.relay.backend import Backend
from appliance.worker.relay.copying import Side


def overdue(
    client: Side, server: Side, *, frontend: FrontendState, backend: Backend, now: float
) -> EndReason | None:
    """Return why the session ends if a side has been silent for too long; else None.

    The shorter `fin` timeouts count from the FIN sent to that side.
    """
    if now - client.active_at >= (
        frontend.timeout_client_fin if client.shut else frontend.timeout_client
    ) and _is_silent(client):
        return EndReason.CLIENT_FIN_TIMEOUT if client.shut else EndReason.CLIENT_TIMEOUT
    if now - server.active_at >= (
        backend.timeout_server_fin if server.shut else backend.timeout_server
    ) and _is_silent(server):
        return EndReason.SERVER_FIN_TIMEOUT if server.shut else EndReason.SERVER_TIMEOUT
    return None


def first_due(client: Side, server: Side, *, frontend: FrontendState, backend: Backend) -> float:
    """Return when `overdue` could return a reason, if nothing happens before."""
    return min(
        client.active_at + (frontend.timeout_client_fin if client.shut else frontend.timeout_client),
        server.active_at + (backend.timeout_server_fin if server.shut else backend.timeout_server),
    )


def _is_silent(side: Side) -> bool:
    """Return whether this side delays the session, and not the other one or the network."""
    if side.blocked() and not side.other.blocked():
        # It is not read, because the other side does not take earlier bytes: its silence is our doing.
        return False
    if side.shut and side.acknowledges():
        # We have sent a FIN, but the kernel still holds bytes before it, and the peer has acknowledged some
        # since the last check: the timeout of a slow download runs from its last byte, not from our last
        # write.
        side.active_at = side.traffic.now
        return False
    return True
