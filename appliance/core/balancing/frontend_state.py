"""A frontend in one worker: its configuration flattened for the data path, and its counters."""

from appliance.core.balancing.access_lists import AccessLists
from appliance.core.balancing.client_routes import ClientRoutes
from appliance.core.balancing.sni_routes import SniRoutes
from appliance.core.balancing.worker_shares import share
from appliance.model.snapshot.frontends import Frontend
from appliance.wire.boards.worker_board import FrontendCounters


class FrontendState:
    """A frontend's live state. `limit` is this worker's share of max_connections; times are seconds.

    `current` and `total` count connections, `denied` those that the access lists refuse, `failed` those that
    ended before they had a server. The configuration's values are copied into plain attributes because each
    connection reads them.
    """

    __slots__ = (
        "access_lists",
        "bytes_in",
        "bytes_out",
        "client_routes",
        "config",
        "current",
        "denied",
        "failed",
        "limit",
        "max_age",
        "pool",
        "routes",
        "timeout_client",
        "timeout_client_fin",
        "timeout_hello",
        "total",
    )

    def __init__(self, config: Frontend, *, workers: int, index: int) -> None:
        self.current = self.total = self.denied = self.failed = self.bytes_in = self.bytes_out = 0
        self.apply(config, workers=workers, index=index)

    @property
    def name(self) -> str:
        """Name of the frontend."""
        return self.config.name

    def is_full(self) -> bool:
        """Whether there are as many connections as the limit allows; the next ones wait in the backlog."""
        return 0 < self.limit <= self.current

    def apply(self, config: Frontend, *, workers: int, index: int) -> None:
        """Use another configuration from the next connection, timeout and limit on."""
        self.config = config
        self.limit = share(config.max_connections, workers=workers, index=index)
        self.timeout_client = config.timeout_client
        self.timeout_client_fin = config.timeout_client_fin
        self.max_age = config.max_age or 0.0
        self.pool = config.pool or ""
        self.timeout_hello = config.timeout_hello
        self.routes = SniRoutes(config.sni) if config.sni else None
        self.client_routes = ClientRoutes(config.clients)
        listed = config.allow or config.deny
        self.access_lists = AccessLists(allow=config.allow, deny=config.deny) if listed else None

    def expiry(self, now: float, *, chance: float) -> float:
        """Return when a connection that begins now is too old; `chance` is a random number from 0 to 1.

        The jitter prevents connections that began together, after a reload of their clients, from ending
        together.
        """
        return now + self.max_age * (1.0 + self.config.max_age_jitter * (2.0 * chance - 1.0))

    def counters(self) -> FrontendCounters:
        """Return the record of this frontend on the worker's board."""
        return FrontendCounters(
            name=self.name,
            current=self.current,
            total=self.total,
            denied=self.denied,
            failed=self.failed,
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
        )
