"""The differences between two snapshots: as paths for the operator, and exactly, so that they can be applied.

A snapshot is compared as a tree whose lists of named things (groups, frontends, pools, servers, virtual
routers) are mappings by name; their order is a separate entry. Number and source are a snapshot's identity,
not its content; so is the mark that it is a placeholder.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import msgspec

from appliance.model.snapshot.snapshot import Snapshot

Keys = tuple[str, ...]

_SECTIONS: Final = {
    "cluster": ("cluster", "name"),
    "domain": ("cluster", "domain"),
    "drain": ("defaults", "drain"),
    "readers": ("group",),
    "left_out": ("source", "http"),
}
_SERVERS: Final = {"host": "address", "port": "address"}
_ROUTERS: Final = {
    "password": ("auth", "pass"),
    "hmac": ("auth", "hmac"),
    "family": ("addresses",),
}
_STATS: Final = {
    "more_binds": ("also_bind",),
    "paths": ("uri",),
    "user": ("auth", "user"),
    "password": ("auth", "password"),
    "password_file": ("auth", "password_file"),
    "certificate": ("tls", "certificate"),
    "key": ("tls", "key"),
}
_TIMEOUT: Final = "timeout_"
_FAMILIES: Final = ("-v4", "-v6")

ORDER: Final = "*"
"""The key for the order of named things; no name may be `*`."""

_NAMED: Final = frozenset({"groups", "frontends", "pools", "servers", "virtual_routers", "notify"})
_IDENTITY: Final = ("number", "source", "awaited")
Tree = dict[str, object]


def operators_keys(path: Keys) -> tuple[Keys, ...]:
    """Return the keys, as paths from the top of the file; `path` is one of a snapshot's tree.

    A snapshot has everything filled in, at every server and frontend. The file sets it there, at the pool, or
    in `defaults`; to show a line of the file, look at these keys in this order.
    """
    return tuple(_keys(path))


def _keys(path: Keys) -> Iterator[Keys]:
    match path:
        case ("groups", group, "frontends", name, *rest):
            yield from _of_frontend((group, "frontends", name), tuple(rest))
        case ("groups", *rest):
            yield tuple(rest)
        case ("pools", pool, *rest):
            yield from _of_pool(("pools", pool), tuple(rest))
        case ("virtual_routers", *rest):
            yield from _of_routers(tuple(rest))
        case ("stats", key, *rest):
            yield ("stats", *_STATS.get(key, (key,)), *rest)
        case _:
            yield (*_SECTIONS.get(path[0], path[:1]), *path[1:])


def _of_frontend(at: Keys, rest: Keys) -> Iterator[Keys]:
    match rest:
        case ("binds", *_):
            yield (*at, "bind")
        case ("redirect", "sources", *_):
            yield (*at, "redirect", "from")
        case _:
            yield (*at, *_timeouts(rest))
            yield ("defaults", *_timeouts(rest))


def _of_pool(at: Keys, rest: Keys) -> Iterator[Keys]:
    match rest:
        case ("servers", server, "check", *checked):
            yield (*at, "servers", server, "check", *checked)
            yield (*at, "check", *checked)
        case ("servers", server, key, *_):
            yield (*at, "servers", server, _SERVERS.get(key, key))
        case ("discover", *_):
            yield (*at, "servers", "discover")
        case _:
            yield (*at, *_timeouts(rest))
            yield ("defaults", *_timeouts(rest))


def _of_routers(path: Keys) -> Iterator[Keys]:
    keys = (*_ROUTERS.get(path[1], path[1:2]), *path[2:]) if path[1:] else ()
    yield ("virtual_ips", *path[:1], *keys)
    for family in _FAMILIES:  # one entry of the file with addresses of both is two routers here
        if path and path[0].endswith(family):
            yield ("virtual_ips", path[0].removesuffix(family), *keys)


def _timeouts(path: Keys) -> Keys:
    if path and path[0].startswith(_TIMEOUT):
        return ("timeouts", path[0].removeprefix(_TIMEOUT), *path[1:])
    return path


class Absent(Enum):
    """Marks the side of a change that has no value."""

    ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """One entry of the tree that differs: added where `old` is absent, removed where `new` is."""

    path: tuple[str, ...]
    old: object
    new: object


def diff(old: Snapshot, new: Snapshot) -> tuple[ConfigChange, ...]:
    """Return the changes that turn one snapshot into another; empty if both have the same content."""
    old, new = _without_same_pools(old, new)
    return tuple(_changes(_tree(old), _tree(new), ()))


def _without_same_pools(old: Snapshot, new: Snapshot) -> tuple[Snapshot, Snapshot]:
    """Leave out pools that are the same in both, unless the order of pools differs.

    A tree of all servers takes twenty times as long as the comparison of their values.
    """
    if [pool.name for pool in old.pools] != [pool.name for pool in new.pools]:
        return old, new
    differing = [
        (before, after) for before, after in zip(old.pools, new.pools, strict=True) if before != after
    ]
    return (
        replace(old, pools=tuple(before for before, _ in differing)),
        replace(new, pools=tuple(after for _, after in differing)),
    )


def apply(snapshot: Snapshot, changes: tuple[ConfigChange, ...]) -> Snapshot:
    """Return the snapshot with the changes made; its number and source stay."""
    tree = _tree(snapshot)
    for change in changes:
        _make(tree, change)
    tree |= {key: getattr(snapshot, key) for key in _IDENTITY}
    return msgspec.convert(_in_order(tree), Snapshot)


def changed(old: Snapshot, new: Snapshot) -> tuple[str, ...]:
    """Return the paths that differ, for the operator: down to the frontend, pool or server, each once.

    `pools.masters` is the pool's own settings, `pools.masters.servers.master-2` one server, and `pools` or
    `pools.masters.servers` only their order.
    """
    changes = diff(old, new)
    resized = {change.path[:-1] for change in changes if _comes_or_goes(change)}
    shown = (change for change in changes if change.path[-1] != ORDER or change.path[:-1] not in resized)
    return tuple(dict.fromkeys(_operators_path(change.path) for change in shown))


def _comes_or_goes(change: ConfigChange) -> bool:
    return change.old is Absent.ABSENT or change.new is Absent.ABSENT


def _operators_path(path: tuple[str, ...]) -> str:
    """Return a path of the tree as in the operator's file, no deeper than a named thing."""
    steps = tuple(step for step in path if step != ORDER)
    match steps:
        case ("groups", _, "frontends", *_) | ("pools", _, "servers", *_):
            steps = steps[:4]
        case ("pools" | "virtual_routers" | "notify", *_):
            steps = steps[:2]
    return ".".join(operators_keys(steps)[0] or steps)


def _changes(old: Tree, new: Tree, at: tuple[str, ...]) -> Iterator[ConfigChange]:
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key, Absent.ABSENT), new.get(key, Absent.ABSENT)
        if isinstance(before, dict) and isinstance(after, dict):
            yield from _changes(before, after, (*at, key))
        elif before != after:
            yield ConfigChange(path=(*at, key), old=before, new=after)


def _make(tree: Tree, change: ConfigChange) -> None:
    *parents, last = change.path
    for key in parents:
        below = tree[key]
        if not isinstance(below, dict):
            raise TypeError(f"no mapping at {key} of {change.path}: the changes are of another snapshot")
        tree = below
    if change.new is Absent.ABSENT:
        del tree[last]
        return
    tree[last] = change.new


def _tree(snapshot: Snapshot) -> Tree:
    fields: Tree = msgspec.to_builtins(snapshot)
    return {key: _by_name(key, value) for key, value in fields.items() if key not in _IDENTITY}


def _by_name(key: str, value: object) -> object:
    """Turn the lists of named things, at any depth, into mappings."""
    if isinstance(value, dict):
        return {below: _by_name(below, each) for below, each in value.items()}
    if key not in _NAMED or not isinstance(value, tuple):
        return value
    order = tuple(each["name"] for each in value)
    return {ORDER: order, **{name: _by_name(name, each) for name, each in zip(order, value, strict=True)}}


def _in_order(value: object) -> object:
    """Turn mappings of named things back into lists."""
    if not isinstance(value, dict):
        return value
    if ORDER in value:
        return [_in_order(value[name]) for name in value[ORDER]]
    return {key: _in_order(each) for key, each in value.items()}
