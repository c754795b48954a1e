"""One server of a pool as one worker sees it: what balancing decides by, and what it has counted."""

from dataclasses import dataclass

from appliance.model.snapshot import Server
from appliance.wire.health_board import Admin, ServerState

Address = tuple[str, int]


@dataclass(slots=True, eq=False)
class Member:
    """A server with its live state. `limit` is this worker's share of max_connections, 0 is none.

    `weight` is the effective one, and `turn` and `seed` belong to the balance algorithms. `address` None
    means that the server's name has not been resolved.
    """

    pool: str
    config: Server
    address: Address | None
    limit: int
    seed: int
    turn: float
    weight: float = 0.0
    state: ServerState = ServerState.CHECKING
    admin: Admin = Admin.READY
    current: int = 0
    total: int = 0
    failed: int = 0
    queued: int = 0
    bytes_in: int = 0
    bytes_out: int = 0

    @property
    def name(self) -> str:
        """Name of the server within its pool."""
        return self.config.name

    @property
    def label(self) -> str:
        """Pool and server, as operators write them."""
        return f"{self.pool}/{self.config.name}"

    @property
    def full(self) -> bool:
        """Whether the limit is reached."""
        return 0 < self.limit <= self.current
