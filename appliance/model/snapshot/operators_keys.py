"""Which keys of the operator's file may have set an entry of a snapshot: the most specific one first.

A snapshot has everything filled in, at every server and frontend. The file sets it there, at the pool, or in
`defaults`; to show a line of the file, look at these keys in this order.
"""

from collections.abc import Iterator
from typing import Final

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


def operators_keys(path: Keys) -> tuple[Keys, ...]:
    """Return the keys, as paths from the top of the file; `path` is one of a snapshot's tree."""
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
