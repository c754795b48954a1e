"""What this node has of each virtual address: it serves it, keeps it for connections, or has nothing of it.

An address that was served is kept for at least a few seconds: neighbours still send to the old node, and the
connections that they open there must not be lost. It is given up when no connection is left, or when no node
forwards packets here: a successor that is no appliance, such as keepalived, resets the connections. At the
deadline the remaining connections are cut first: as long as the address is here, both ends can be notified.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

KEPT_AT_LEAST: Final = 3.0
"""Seconds that an address is kept after it was left."""

UNLED_AT_MOST: Final = 10.0
"""Seconds that an address is kept while no successor of our kind reports."""

CUT_AT_MOST: Final = 3.0
"""Seconds that an address is kept for connections that were cut and still remain."""


class GaveUp(StrEnum):
    """Why an address is no longer kept; log and tests share these words."""

    EMPTY = "no-connections"
    DEADLINE = "deadline"
    UNLED = "no-successor"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedAddress:
    """One address of ours: `left_at` is when it was left, None while it is served.

    `connections` are those last counted; `led_at` is when a successor last reported. `cut_at` is when its
    connections were cut because of the deadline.
    """

    address: str
    left_at: float | None = None
    connections: int = 0
    led_at: float = 0.0
    cut_at: float | None = None

    @property
    def active(self) -> bool:
        """Whether this node serves the address."""
        return self.left_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedChanges:
    """The addresses that stay, those of them to `cut` now, and those `given_up`, with the reason."""

    served: Mapping[str, ServedAddress]
    given_up: Mapping[str, GaveUp]
    cut: tuple[str, ...] = ()


def after(
    before: Mapping[str, ServedAddress],
    *,
    active: Iterable[str],
    connections: Mapping[str, int],
    led: Iterable[str],
    longest: float,
    now: float,
) -> ServedChanges:
    """Return what becomes of the addresses: `active` are served now, `led` have a successor that reports.

    `connections` were counted on this node; an address that is missing was not counted.
    """
    serving, heard = frozenset(active), frozenset(led)
    going: dict[str, ServedAddress] = {}
    given_up: dict[str, GaveUp] = {}
    cut: list[str] = []
    for address in (*before, *(each for each in sorted(serving) if each not in before)):
        one = _moved(before.get(address, ServedAddress(address=address)), address in serving, now)
        one = replace(
            one,
            connections=connections.get(address, one.connections),
            led_at=now if address in heard else one.led_at,
        )
        reason = _end(one, counted=address in connections, now=now)
        if reason is not None:
            given_up[address] = reason
            continue
        if _is_over(one, longest=longest, now=now):
            one = replace(one, cut_at=now)
            cut.append(address)
        going[address] = one
    return ServedChanges(served=going, given_up=given_up, cut=tuple(cut))


def _moved(one: ServedAddress, serves: bool, now: float) -> ServedAddress:  # noqa: FBT001  # a fact, not an option
    if serves:
        return replace(one, left_at=None, cut_at=None)
    if one.left_at is None:
        return replace(one, left_at=now, led_at=now)
    return one


def _is_over(one: ServedAddress, *, longest: float, now: float) -> bool:
    return one.left_at is not None and one.cut_at is None and now - one.left_at >= max(longest, KEPT_AT_LEAST)


def _end(one: ServedAddress, *, counted: bool, now: float) -> GaveUp | None:
    if one.left_at is None or now - one.left_at < KEPT_AT_LEAST:
        return None
    if counted and not one.connections:
        return GaveUp.EMPTY if one.cut_at is None else GaveUp.DEADLINE
    if one.cut_at is not None and now - one.cut_at >= CUT_AT_MOST:
        return GaveUp.DEADLINE
    if now - one.led_at >= UNLED_AT_MOST:
        return GaveUp.UNLED
    return None
