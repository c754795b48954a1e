"""One server of a pool in one worker: the values that balancing decides by, and its counters."""

from appliance.model.server_states import AdminState, ServerState
from appliance.model.server_weights import OperatorWeight, asked_weight
from appliance.model.snapshot.pools import Server
from appliance.wire.boards.worker_board import ServerCounters

Address = tuple[str, int]


class PoolMember:
    """A server with its state and counters. `limit` is this worker's share of max_connections, 0 for none.

    From the health board: `state` and `admin` (the operator's state), `weight` (the effective one: less than
    the full one in a slow start), `operator_weight` (None for the configured one), `unreachable` (nothing
    answers at its address) and `address`, None while the server's name has not been resolved. `turn` and
    `seed` belong to the balance algorithms. `errors` counts connects in a row that failed at the server
    (HAProxy's `observe layer4`), `queued` the connections that wait for it. `ServerCounters` describes the
    other counters. Bytes are as seen from the client: `bytes_in` came from it.
    """

    # A plain class: its attributes are fields of a C struct when compiled, which a dataclass's are not.
    __slots__ = (
        "address",
        "admin",
        "bytes_in",
        "bytes_out",
        "client_aborts",
        "config",
        "connect_seconds",
        "connected",
        "current",
        "ended",
        "errors",
        "failed",
        "given_up",
        "limit",
        "longest_connect",
        "longest_queue",
        "longest_session",
        "operator_weight",
        "pool",
        "queue_seconds",
        "queued",
        "redispatched",
        "retried",
        "seed",
        "server_aborts",
        "session_seconds",
        "state",
        "total",
        "turn",
        "unreachable",
        "weight",
    )

    def __init__(
        self,
        *,
        pool: str,
        config: Server,
        address: Address | None,
        limit: int,
        seed: int,
        turn: float,
        weight: float = 0.0,
    ) -> None:
        self.pool = pool
        self.config = config
        self.address = address
        self.limit = limit
        self.seed = seed
        self.turn = turn
        self.weight = weight
        self.state = ServerState.CHECKING
        self.admin = AdminState.READY
        self.unreachable = False
        self.operator_weight: OperatorWeight | None = None
        self.errors = self.current = self.total = self.failed = self.queued = 0
        self.bytes_in = self.bytes_out = self.connected = self.given_up = 0
        self.retried = self.redispatched = self.client_aborts = self.server_aborts = 0
        self.ended = 0
        self.queue_seconds = self.connect_seconds = self.session_seconds = 0.0
        self.longest_queue = self.longest_connect = self.longest_session = 0.0

    @property
    def name(self) -> str:
        """Name of the server within its pool."""
        return self.config.name

    @property
    def whole_weight(self) -> float:
        """The weight without slow start: the operator's, or the configured one."""
        return asked_weight(self.config.weight, self.operator_weight)

    @property
    def label(self) -> str:
        """Pool and server, as operators write them."""
        return f"{self.pool}/{self.config.name}"

    def count_connect(self, queued: float, seconds: float) -> None:
        """Count a connect and the wait in the queue before it; both are in seconds."""
        self.connected += 1
        self.queue_seconds += queued
        self.connect_seconds += seconds
        self.longest_queue = max(self.longest_queue, queued)
        self.longest_connect = max(self.longest_connect, seconds)

    def count_end(self, seconds: float) -> None:
        """Count the end of a session that had a server; `seconds` is its duration."""
        self.ended += 1
        self.session_seconds += seconds
        self.longest_session = max(self.longest_session, seconds)

    def count_error(self) -> bool:
        """Count an error of the server; return whether `error_limit` is reached: `health` is then notified.

        As with HAProxy's `error-limit`, the count then starts again.
        """
        self.errors += 1
        limit = self.config.check.error_limit if self.config.check else 0
        if not 0 < limit <= self.errors:
            return False
        self.errors = 0
        return True

    @property
    def full(self) -> bool:
        """Whether the limit is reached."""
        return 0 < self.limit <= self.current

    @property
    def is_counted(self) -> bool:
        """Whether any counter differs from 0."""
        used = self.total or self.current or self.queued or self.failed or self.ended
        return bool(used or self.bytes_in or self.bytes_out)

    def counters(self) -> ServerCounters:
        """Return the record of this server on the worker's board."""
        return ServerCounters(
            pool=self.pool,
            server=self.name,
            current=self.current,
            total=self.total,
            failed=self.failed,
            queued=self.queued,
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            given_up=self.given_up,
            retried=self.retried,
            redispatched=self.redispatched,
            client_aborts=self.client_aborts,
            server_aborts=self.server_aborts,
            connected=self.connected,
            ended=self.ended,
            queue_seconds=self.queue_seconds,
            connect_seconds=self.connect_seconds,
            session_seconds=self.session_seconds,
            longest_queue=self.longest_queue,
            longest_connect=self.longest_connect,
            longest_session=self.longest_session,
        )
