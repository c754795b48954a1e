"""What a `vrrp` tells the one that takes its place: the state of each of its virtual routers."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import msgspec

from appliance.wire.lines.control import Answer, ControlError, good


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTrack:
    """The verdict of one track."""

    name: str
    up: bool
    value: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRouter:
    """One virtual router; `active` is whether it has the addresses and means to keep them."""

    name: str
    router_id: int
    active: bool
    yielded: bool
    tracks: tuple[KnownTrack, ...]


def encode(routers: Iterable[KnownRouter]) -> list[dict[str, object]]:
    """Return the routers as an answer holds them."""
    return [asdict(each) for each in routers]


def leaving() -> Answer:
    """Return what one answers that was told to end: its place is free when it has gone."""
    return good(leaving=True)


def is_leaving(values: Mapping[str, object]) -> bool:
    """Return whether an answer is `leaving`."""
    return values.get("leaving") is True


def decode(values: Mapping[str, object]) -> tuple[KnownRouter, ...]:
    """Return the routers of an answer; raises ControlError."""
    try:
        return msgspec.convert(values.get("routers"), tuple[KnownRouter, ...])
    except msgspec.ValidationError as error:
        raise ControlError(f"routers: {error}") from error
