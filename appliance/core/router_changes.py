"""What a new configuration means for the virtual routers that run: the plan of a reload.

A router that is the same in both is in no plan, and so is not touched.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from appliance.model.virtual_router import VirtualRouter


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """A router that is new."""

    router: VirtualRouter


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """A router that is there no more: it leaves."""

    router: VirtualRouter


@dataclass(frozen=True, slots=True, kw_only=True)
class Revised:
    """The same virtual router with other parameters: it goes on in its state."""

    before: VirtualRouter
    after: VirtualRouter


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """Another virtual router under the same name, or the same one under another name.

    `keeps` is whether those of its addresses that both have stay where they are.
    """

    before: VirtualRouter
    after: VirtualRouter
    keeps: bool


Change = Added | Removed | Revised | Replaced


def changes(before: Iterable[VirtualRouter], after: Iterable[VirtualRouter]) -> tuple[Change, ...]:
    """Return what is to be done: first what goes, then what changes, then what comes."""
    old = {each.name: each for each in before}
    new = {each.name: each for each in after}
    gone = {_identity(each): each for name, each in old.items() if name not in new}
    renamed = [
        Replaced(before=gone.pop(_identity(each)), after=each, keeps=True)
        for name, each in new.items()
        if name not in old and _identity(each) in gone
    ]
    known = old.keys() | {each.after.name for each in renamed}
    left = {each.before.name for each in renamed} | new.keys()
    removed = [Removed(router=each) for name, each in old.items() if name not in left]
    changed = [_change(old[name], each) for name, each in new.items() if name in old and old[name] != each]
    added = [Added(router=each) for name, each in new.items() if name not in known]
    return (*removed, *changed, *renamed, *added)


def _change(before: VirtualRouter, after: VirtualRouter) -> Revised | Replaced:
    if _identity(before) == _identity(after):
        return Revised(before=before, after=after)
    # A virtual MAC has the router id in it, and the addresses are on that.
    movable = not before.virtual_mac or before.router_id == after.router_id
    common = set(before.addresses) & set(after.addresses)
    keeps = movable and _place(before) == _place(after) and bool(common)
    return Replaced(before=before, after=after, keeps=keeps)


def _identity(router: VirtualRouter) -> tuple[object, ...]:
    """Return what makes it this virtual router to its peers (RFC 9568 section 1.7), and where it lives."""
    return (router.router_id, router.version, *_place(router))


def _place(router: VirtualRouter) -> tuple[object, ...]:
    return (router.interface, router.family, router.virtual_mac)
