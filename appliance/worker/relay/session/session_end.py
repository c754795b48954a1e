"""The end of a session: the meaning of a failed connect, and the end that each of the two peers sees."""

from errno import (
    EACCES,
    EADDRNOTAVAIL,
    ECONNREFUSED,
    ECONNRESET,
    EMFILE,
    ENFILE,
    ENOPROTOOPT,
    EPIPE,
    ETIMEDOUT,
)
from typing import Final

from appliance.model.end_reasons import EndReason
from appliance.worker.relay.copying import Side
from appliance.worker.relay.raw_sockets import close, reset

CONNECT_REASONS: Final = {
    ECONNREFUSED: EndReason.CONNECT_REFUSED,
    ETIMEDOUT: EndReason.CONNECT_TIMEOUT,
    EADDRNOTAVAIL: EndReason.NO_PORTS,
    # The server accepted and reset before we wrote. The kernel's tcp_reset turns a RST that follows a FIN
    # into EPIPE, any other one after the handshake into ECONNRESET.
    ECONNRESET: EndReason.SERVER_ABORT,
    EPIPE: EndReason.SERVER_ABORT,
    EMFILE: EndReason.NO_DESCRIPTORS,
    ENFILE: EndReason.NO_DESCRIPTORS,
}
"""The meaning of a connect's errno; any other one is CONNECT_FAILED."""

PORT_GIVEN: Final = frozenset({ENOPROTOOPT, EACCES})
"""The errno of a connect whose port is that of a connection given to another node: another port will do."""

SERVERS_FAULT: Final = frozenset(
    {EndReason.CONNECT_REFUSED, EndReason.CONNECT_TIMEOUT, EndReason.CONNECT_FAILED, EndReason.SERVER_ABORT}
)
"""Failed connects that count as errors of the server (HAProxy's `observe layer4`); others are our own."""

_CLEAN: Final = frozenset(
    {
        EndReason.COMPLETED,
        EndReason.CLIENT_TIMEOUT,
        EndReason.SERVER_TIMEOUT,
        EndReason.CLIENT_FIN_TIMEOUT,
        EndReason.SERVER_FIN_TIMEOUT,
        EndReason.MAX_AGE,
    }
)
"""Ends that a peer sees as a FIN; after any other end it must not take the data for complete."""


def close_sides(client: Side, server: Side | None, reason: EndReason) -> None:
    """Close both descriptors; each peer sees a FIN or a RST.

    As in HAProxy, silence and age end with a FIN, or with a RST if bytes for that peer are dropped: it would
    take a FIN for the end of a complete stream. The kernel sends a RST for any close that leaves received
    bytes unread (RFC 2525 section 2.17), whatever is chosen here.

    A server that neither sent nor received a FIN is reset in any case. The end that sends the first FIN keeps
    the connection in TIME_WAIT for a minute: with clients mostly the peer, with servers it would be us, at
    the cost of one local port each.
    """
    clean = reason in _CLEAN
    whole = clean and (server is None or not server.blocked())
    if server is not None:
        # No table of the two functions: called by name they are C calls once compiled.
        if clean and (server.eof or server.shut) and not client.blocked():
            close(server.release())
        else:
            reset(server.release())
    if whole:
        close(client.release())
    else:
        reset(client.release())
