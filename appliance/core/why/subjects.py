"""What an operator means by a name: a server, a pool, a frontend, an address, a BGP neighbour; or several.

Addresses work, too: that of a virtual or shared IP, of a server, or one that a frontend listens on.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from ipaddress import ip_address, ip_interface
from typing import Final

from appliance.core.why.explanation import Kind
from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.snapshot import Snapshot

_NEAREST: Final = 3
_EVERY_ADDRESS: Final = frozenset({"::", "0.0.0.0"})  # noqa: S104  # what is listened on, not bound here


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One thing by its name; `pool` is that of a server, `group` that of a frontend, otherwise None."""

    kind: Kind
    name: str
    pool: str | None = None
    group: str | None = None

    @property
    def label(self) -> str:
        """Return the name, unique among its kind."""
        return "/".join(part for part in (self.pool, self.name) if part)


def subjects(snapshot: Snapshot) -> tuple[Subject, ...]:
    """Return everything that can be explained."""
    return tuple(subject for subject, _ in _named(snapshot))


def meant(text: str, snapshot: Snapshot, *, kind: Kind | None = None) -> tuple[Subject, ...]:
    """Return what a text means; a full name wins over a server's name alone, and that over addresses."""
    known = [(subject, words) for subject, words in _named(snapshot) if kind in (None, subject.kind)]
    for position in range(max((len(words) for _, words in known), default=0)):
        found = tuple(
            dict.fromkeys(
                subject for subject, words in known if _matches(text, words[position : position + 1])
            )
        )
        if found:
            return found
    return ()


def _matches(text: str, names: tuple[frozenset[str], ...]) -> bool:
    return any(text in each or _canonical(text) in each for each in names)


def similar(text: str, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the names most similar to a text; empty if none is."""
    names = sorted({subject.label for subject in subjects(snapshot)} | _server_names(snapshot))
    return tuple(get_close_matches(text, names, n=_NEAREST))


def _server_names(snapshot: Snapshot) -> set[str]:
    return {server.name for pool in snapshot.pools for server in pool.servers}


def _named(snapshot: Snapshot) -> Iterator[tuple[Subject, tuple[frozenset[str], ...]]]:
    """Yield each thing with its names, in the order of their precedence."""
    for router in snapshot.virtual_routers:
        literal = frozenset(str(ip_interface(each).ip) for each in router.addresses)
        yield (
            Subject(kind=Kind.VIRTUAL_IP, name=router.name),
            (frozenset({router.name}), frozenset(), literal | frozenset(router.addresses)),
        )
    for shared in snapshot.shared_ips:
        literal = frozenset(each.partition("/")[0] for each in shared.addresses)
        yield (
            Subject(kind=Kind.SHARED_IP, name=shared.name),
            (frozenset({shared.name, f"shared/{shared.name}"}), frozenset(), literal | {*shared.addresses}),
        )
    for neighbor in snapshot.bgp.neighbors if snapshot.bgp else ():
        yield (
            Subject(kind=Kind.NEIGHBOR, name=neighbor.name),
            (frozenset({neighbor.name}), frozenset(), frozenset({neighbor.address})),
        )
    for group in snapshot.groups:
        for frontend in group.frontends:
            binds = frozenset(name for bind in frontend.binds for name in _bind_names(bind))
            names = frozenset({frontend.name, f"{group.name}/{frontend.name}"})
            subject = Subject(kind=Kind.FRONTEND, name=frontend.name, group=group.name)
            yield subject, (names, frozenset(), binds)
    for pool in snapshot.pools:
        yield Subject(kind=Kind.POOL, name=pool.name), (frozenset({pool.name}),)
        for server in pool.servers:
            address = Bind(host=server.host, port=server.port)
            places = frozenset({str(address), server.host})
            yield (
                Subject(kind=Kind.SERVER, name=server.name, pool=pool.name),
                (frozenset({f"{pool.name}/{server.name}"}), frozenset({server.name}), places),
            )


def _bind_names(bind: Bind) -> Iterator[str]:
    yield str(bind)
    yield str(bind.port)
    yield f":{bind.port}"
    if bind.host in _EVERY_ADDRESS:
        yield from (f"{host}:{bind.port}" for host in ("*", "localhost", "127.0.0.1", "[::1]", "0.0.0.0"))  # noqa: S104  # names
    else:
        yield bind.host


def _canonical(text: str) -> str:
    """Return an address as the snapshot writes it, any other text unchanged."""
    try:
        return str(ip_address(text.strip("[]")))
    except ValueError:
        return text
