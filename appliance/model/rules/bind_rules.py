"""Rules for addresses that frontends listen on: none is taken twice, no server leads back to its own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from appliance.model.config.configuration import Config
from appliance.model.config.frontends import FrontendSection
from appliance.model.config.values.addresses import Endpoint, is_loopback
from appliance.model.messages.problems import Finding, Path, dotted
from appliance.model.rules.findings import error, warning
from appliance.model.rules.references import frontends, groups, servers_of
from appliance.model.snapshot.frontends import Forward

MOST_BINDS: Final = 5000
"""Most binds of a group's workers, which get them on their command lines: Linux limits those."""

_LOOPBACK: Final = frozenset({"127.0.0.1", "::1"})
_WIDE: Final = ("::", "0.0.0.0", "localhost", *sorted(_LOOPBACK))  # noqa: S104  # recognised, not bound


def findings(config: Config) -> Iterator[Finding]:
    """Yield binds that clash or are too many (errors), then connections that would loop (warnings)."""
    yield from _clashes(config)
    yield from _too_many(config)
    for path, frontend in frontends(config):
        yield from _loops(path, frontend, config)


def _too_many(config: Config) -> Iterator[Finding]:
    for name, group in groups(config):
        moved = (each for each in group.frontends.values() if each.forward is Forward.PROXY)
        count = sum(len(each.bind) for each in moved)
        if count > MOST_BINDS:
            message = f"{count} binds: the workers of a group take at most {MOST_BINDS}"
            yield error((name, "frontends"), message)


@dataclass(frozen=True, slots=True, kw_only=True)
class _WrittenBind:
    """An address to listen on, and where it is written in the file."""

    path: Path
    endpoint: Endpoint


def _binds(config: Config) -> Iterator[_WrittenBind]:
    for path, frontend in frontends(config):
        for index, endpoint in enumerate(frontend.bind):
            yield _WrittenBind(path=(*path, "bind", index), endpoint=endpoint)
    if config.stats is not None:
        yield _WrittenBind(path=("stats", "bind"), endpoint=config.stats.bind)
        for index, endpoint in enumerate(config.stats.also_bind):
            yield _WrittenBind(path=("stats", "also_bind", index), endpoint=endpoint)


def _clashes(config: Config) -> Iterator[Finding]:
    taken: dict[int, dict[str, _WrittenBind]] = {}  # by port, the first bind of each host
    for bind in _binds(config):
        others = taken.setdefault(bind.endpoint.port, {})
        first = _first_overlapping(bind.endpoint, others)
        if first is not None:
            yield Finding(path=bind.path, message=_clash(bind.endpoint, first), touches=(first.path,))
        others.setdefault(bind.endpoint.host, bind)


def _first_overlapping(endpoint: Endpoint, others: Mapping[str, _WrittenBind]) -> _WrittenBind | None:
    """Return the bind of the same port that overlaps, or None.

    Only names in _WIDE can overlap with other names. So a bind of a usual address is compared only with
    these, and a file of thousands of binds is judged in linear time.
    """
    if endpoint.host in others:
        return others[endpoint.host]
    likely = others if endpoint.host in _WIDE else [host for host in _WIDE if host in others]
    return next((others[host] for host in likely if _overlap(others[host].endpoint, endpoint)), None)


def _clash(endpoint: Endpoint, first: _WrittenBind) -> str:
    where = dotted(first.path)
    if endpoint == first.endpoint:
        return f"`{endpoint}` is already taken by {where}"
    return f"`{endpoint}` clashes with `{first.endpoint}` of {where}: one covers the other"


def _overlap(one: Endpoint, other: Endpoint) -> bool:
    """Return whether two binds of one port take the same connections; `::` listens on IPv4 too."""
    hosts = {one.host, other.host}
    if len(hosts) == 1 or "::" in hosts:
        return True
    if "0.0.0.0" in hosts:  # noqa: S104  # recognised, not bound
        return not any(":" in host for host in hosts)
    return "localhost" in hosts and not hosts.isdisjoint(_LOOPBACK)


def _loops(path: Path, frontend: FrontendSection, config: Config) -> Iterator[Finding]:
    for pool, name, server in servers_of(frontend, config):
        address = server.address
        index = next((at for at, bind in enumerate(frontend.bind) if _takes(bind, address)), None)
        if index is not None:
            where: Path = (*path, "bind", index)
            message = (
                f"`{address}` leads back to `{frontend.bind[index]}` of {dotted(where)}: connections would "
                "loop"
            )
            server_path: Path = ("pools", pool, "servers", name, "address")
            yield warning(server_path, message, where, (*path, "pool"))


def _takes(bind: Endpoint, address: Endpoint) -> bool:
    """Return whether a bind takes connections to an address that is surely this machine's."""
    if bind.port != address.port:
        return False
    ours = is_loopback(address.host) or address.host == bind.host
    return ours and _overlap(bind, address)
