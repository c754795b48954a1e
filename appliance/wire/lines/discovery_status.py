"""What `discover` answers to `status`: its sources, what it asks for each, and what is wrong."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import msgspec


class DiscoveryStatusError(Exception):
    """The answer is not that of `discover`."""


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
class DiscoveryStatus:
    """All of it. `problems` are for the operator; `installed` is whether the bootstrap is complete."""

    program: str
    pid: int
    started_at: float
    snapshot: int
    pending: int | None
    installed: bool
    sources: tuple[SourceStatus, ...]
    problems: tuple[str, ...]
    not_kept: Mapping[str, str]


def encode(status: DiscoveryStatus) -> Mapping[str, object]:
    """Return the values of the answer."""
    return asdict(status)


def decode(values: Mapping[str, object]) -> DiscoveryStatus:
    """Return what `encode` was given; raises DiscoveryStatusError."""
    try:
        return msgspec.convert(values, DiscoveryStatus)
    except msgspec.ValidationError as error:
        raise DiscoveryStatusError(str(error)) from error
