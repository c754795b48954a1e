"""What `discover` answers to `status`: its sources, what it asks for each, and what is wrong."""

from dataclasses import dataclass

from appliance.wire.lines.status_answer import StatusAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceStatus:
    """One list that is watched. `server` answered last, at `seen_at`; `error` is why it does not now.

    Times are Unix seconds, None for never.
    """

    what: str
    server: str | None
    seen_at: float | None
    error: str | None
    failed_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundStatus:
    """One server of a source; `held` is whether the API does not show it any more."""

    name: str
    host: str
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """One source, and the pools that have its servers. `changed_at` is when they were last others."""

    name: str
    pools: tuple[str, ...]
    servers: tuple[FoundStatus, ...]
    seen_at: float | None
    changed_at: float | None
    hold: str | None
    proxy: bool
    resources: tuple[ResourceStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryStatus(StatusAnswer):
    """All of it. `problems` are for the operator; `installed` is whether the bootstrap is complete."""

    installed: bool
    sources: tuple[SourceStatus, ...]
    problems: tuple[str, ...]
