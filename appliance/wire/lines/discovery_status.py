"""The answer of `discover` to `status`: its sources, its requests for each, and its problems."""

from dataclasses import dataclass

from appliance.wire.lines.status_answer import StatusAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceStatus:
    """One watched list: which `server` answered last, when (Unix seconds), why it does not now."""

    what: str
    server: str | None
    seen_at: float | None
    error: str | None
    failed_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundStatus:
    """One server of a source; `held`: it is kept although the API no longer shows it."""

    name: str
    host: str
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """One source, and the pools with its servers. `changed_at` is when these last changed."""

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
    """The whole answer. `problems` are for the operator; `installed`: the bootstrap is complete."""

    installed: bool
    sources: tuple[SourceStatus, ...]
    problems: tuple[str, ...]
