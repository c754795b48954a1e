"""The answer of a `vrrp` to its replacement: the state of each of its virtual routers."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import msgspec

from appliance.wire.lines.control import Answer, ControlError, good


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTrack:
    """The last result of one track; `value` is the number of a file, 0 for other kinds."""

    name: str
    up: bool
    value: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRouter:
    """A virtual router; `active`: it keeps the addresses, `yielded`: an operator has moved it away."""

    name: str
    router_id: int
    active: bool
    yielded: bool
    tracks: tuple[KnownTrack, ...]


def encode(routers: Iterable[KnownRouter]) -> list[dict[str, object]]:
    """Return the routers as the value `routers` of an answer."""
    return [asdict(each) for each in routers]


def leaving() -> Answer:
    """Return the answer of a `vrrp` that stops: it can be replaced once it has exited."""
    return good(leaving=True)


def is_leaving(values: Mapping[str, object]) -> bool:
    """Return whether an answer is that of a `vrrp` that stops."""
    return values.get("leaving") is True


def decode(values: Mapping[str, object]) -> tuple[KnownRouter, ...]:
    """Return the routers of an answer; raises ControlError."""
    try:
        return msgspec.convert(values.get("routers"), tuple[KnownRouter, ...])
    except msgspec.ValidationError as error:
        raise ControlError(f"routers: {error}") from error
