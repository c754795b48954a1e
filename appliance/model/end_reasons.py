"""Why a client's connection ended; the layout of a worker's board depends on this order."""

from enum import StrEnum


class EndReason(StrEnum):
    """Why a connection ended, or was never made. Log, board and tests share these words."""

    COMPLETED = "completed"
    CLIENT_ABORT = "client-abort"
    SERVER_ABORT = "server-abort"
    CLIENT_TIMEOUT = "client-timeout"
    SERVER_TIMEOUT = "server-timeout"
    CLIENT_FIN_TIMEOUT = "client-fin-timeout"
    SERVER_FIN_TIMEOUT = "server-fin-timeout"
    CONNECT_TIMEOUT = "connect-timeout"
    CONNECT_REFUSED = "connect-refused"
    CONNECT_FAILED = "connect-failed"
    NO_SERVER = "no-server"
    NO_PORTS = "no-ports"
    NO_DESCRIPTORS = "no-descriptors"
    QUEUE_FULL = "queue-full"
    QUEUE_TIMEOUT = "queue-timeout"
    DENIED = "denied"
    SERVER_DOWN = "server-down"
    MAX_AGE = "max-age"
    DRAIN_CUT = "drain-cut"
    KILLED = "killed"
    RETRIED = "retried"
    REDISPATCHED = "redispatched"
    ACCEPT_PAUSED = "accept-paused"
    RESPONDED = "responded"
    INTERNAL = "internal"
    SERVER_UP = "server-up"
