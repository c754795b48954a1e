"""What a reload does to running virtual routers: added, removed, revised, replaced or left alone.

A router that is the same in both configurations is in no plan, and so is not touched: keepalived's users
often report that a reload moves or drops addresses which it did not change. Two routers are the same by their
identity (RFC 9568 section 1.7), not by their names: peers do not know the names, and two routers may have
swapped theirs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from appliance.model.snapshot.virtual_router import VirtualRouter


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """A router that is new."""

    router: VirtualRouter


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """A router that is not in the new configuration: it stops."""

    router: VirtualRouter


@dataclass(frozen=True, slots=True, kw_only=True)
class Revised:
    """The same virtual router with other parameters: it continues in its state."""

    before: VirtualRouter
    after: VirtualRouter


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """A virtual router with the name or id of a former one; addresses that both have (`keeps`) stay."""

    before: VirtualRouter
    after: VirtualRouter
    keeps: bool


Change = Added | Removed | Revised | Replaced


def changes(before: Iterable[VirtualRouter], after: Iterable[VirtualRouter]) -> tuple[Change, ...]:
    """Return the changes in the order to make them: first removals, then changes, then additions."""
    old = {each.name: each for each in before}
    new = {each.name: each for each in after}
    sources = _sources(old, new)
    stay = {each.name for each in sources.values()}
    removed = [Removed(router=each) for name, each in old.items() if name not in stay]
    changed = [_change(each, new[name]) for name, each in sources.items() if each != new[name]]
    added = [Added(router=each) for name, each in new.items() if name not in sources]
    return (*removed, *changed, *added)


def _sources(old: Mapping[str, VirtualRouter], new: Mapping[str, VirtualRouter]) -> dict[str, VirtualRouter]:
    """Return by new name what it replaces: the same virtual router, or else another one of that name."""
    # Its own name comes first: with unicast peers several routers may have one identity.
    found = {name: old[name] for name, each in new.items() if name in old and _is_same(old[name], each)}
    free = {_identity(each): each for name, each in old.items() if name not in found}
    for name, each in new.items():
        if name not in found and _identity(each) in free:
            found[name] = free.pop(_identity(each))
    elsewhere = {each.name for each in found.values()}
    found = {name: old[name] for name in new if name in old and name not in elsewhere} | found
    return {name: found[name] for name in new if name in found}


def _change(before: VirtualRouter, after: VirtualRouter) -> Revised | Replaced:
    if _is_same(before, after):
        if before.name == after.name:
            return Revised(before=before, after=after)
        return Replaced(before=before, after=after, keeps=True)
    # A virtual MAC contains the router id, and the addresses are on its interface.
    movable = not before.virtual_mac or before.router_id == after.router_id
    common = set(before.addresses) & set(after.addresses)
    apart = {each for each in common if _device(before, each) != _device(after, each)}
    keeps = movable and _place(before) == _place(after) and bool(common) and not apart
    return Replaced(before=before, after=after, keeps=keeps)


def _device(router: VirtualRouter, address: str) -> str | None:
    """Return the other interface that an address is on, or None if it is on the router's own."""
    return dict(router.elsewhere).get(address)


def _is_same(before: VirtualRouter, after: VirtualRouter) -> bool:
    return _identity(before) == _identity(after)


def _identity(router: VirtualRouter) -> tuple[object, ...]:
    """Return what identifies this virtual router to its peers (RFC 9568 section 1.7), and where it is."""
    return (router.router_id, router.version, *_place(router))


def _place(router: VirtualRouter) -> tuple[object, ...]:
    return (router.interface, router.family, router.virtual_mac)
