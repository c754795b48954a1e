"""The answer of the program `forward` to `status`, read by `appliance status`."""

from dataclasses import dataclass

from appliance.wire.boards.worker_board import FrontendCounters, ServerCounters
from appliance.wire.lines.status_answer import StatusAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedGroup:
    """The kernel's counters for the frontends of a group, under the name of its proxy, `proxy-api`.

    Bytes are those of whole packets; `failed` are connections that arrived while no server was up.
    """

    program: str
    frontends: tuple[FrontendCounters, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncStatus:
    """The connections of `sync: true`: `state` is a SyncPhase, `since` when.

    `trouble` is why other nodes do not learn connections, empty if they do. `received` are messages of
    other nodes about connections, `failed` those that this kernel refused, `errors` those that were lost, all
    since the start of conntrackd.
    """

    state: str = ""
    since: float = 0.0
    trouble: str = ""
    addresses: tuple[str, ...] = ()
    received: int = 0
    failed: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    errors: int = 0

    @property
    def unlearnt(self) -> str:
        """Why other nodes do not learn connections, "" if they do."""
        return self.trouble or ("nothing is received of another node" if self.state == "alone" else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardStatus(StatusAnswer):
    """The answer. `trouble` is why rules are not as intended; `sync` is None without `sync: true`."""

    trouble: str = ""
    groups: tuple[ForwardedGroup, ...] = ()
    servers: tuple[ServerCounters, ...] = ()
    sync: SyncStatus | None = None
