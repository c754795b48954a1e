"""What the other nodes run, as they report it, and since when it differs from what this node runs.

Nodes take up a new configuration, and find a server down, at different moments: a difference counts after it
has lasted longer than that may take. A node that is silent runs nothing that could differ.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from appliance.model.operator_events import EventKind
from appliance.wire.lines.linger_status import JudgedServer, OtherNode
from appliance.wire.linger_node import UNKNOWN, NodeFacts

SETTLED: Final = 30.0
"""Seconds for which configurations differ before that counts: a push to all nodes takes less."""

MOST: Final = 16
"""Other nodes that are remembered; the last one replaces the one that was silent longest."""

SILENT: Final = 10.0
"""Seconds without a report after which a node is silent."""

FORGOTTEN: Final = 86400.0
"""Seconds after which a silent node is forgotten."""


class Difference(Enum):
    """What may differ between this node and another one: the event when it begins, and when it has ended."""

    CONFIGURATION = (EventKind.CONFIGURATION_DIFFERS, EventKind.CONFIGURATION_AGREES)
    VERDICTS = (EventKind.VERDICTS_DIFFER, EventKind.VERDICTS_AGREE)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedHere:
    """A server as this node finds it; a difference counts after it has lasted `delay` seconds."""

    name: str
    up: bool
    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ThisNode:
    """What this node runs; `servers` are by the key under which they are reported."""

    name: str
    configuration: bytes
    marks: frozenset[bytes]
    servers: Mapping[bytes, JudgedHere]


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceChange:
    """A difference to another node has begun to count, or has ended: its `detail` is "" then."""

    node: str
    about: Difference
    detail: str

    @property
    def event(self) -> EventKind:
        """What this is for operators."""
        begins, ends = self.about.value
        return begins if self.detail else ends


@dataclass(slots=True, kw_only=True)
class _Other:
    facts: NodeFacts
    at: float
    addresses: dict[str, float] = field(default_factory=dict)
    configuration_since: float | None = None
    servers_since: dict[tuple[bytes, bool], float] = field(default_factory=dict)
    counting: frozenset[Difference] = frozenset()


class OtherNodes:
    """The other nodes by name. Nodes with none of this node's virtual addresses are of other clusters."""

    def __init__(self) -> None:
        self._others: dict[str, _Other] = {}
        self._here = ThisNode(name="", configuration=UNKNOWN, marks=frozenset(), servers={})

    def receive(self, address: str, facts: NodeFacts, *, now: float) -> None:
        """Take what the node at an address says of itself."""
        if self._here.marks.isdisjoint(facts.marks):
            return
        # Without names of their own, their addresses distinguish nodes.
        name = facts.name if facts.name not in ("", self._here.name) else address
        for former in [
            one for one, each in self._others.items() if address in each.addresses and one != name
        ]:
            del self._others[former]  # the node has learnt its name, or has got another one
        known = self._others.pop(name, None) or _Other(facts=facts, at=now)
        known.facts, known.at = facts, now
        # It reports by both versions of IP, and on several interfaces.
        known.addresses = {one: at for one, at in known.addresses.items() if now - at < SILENT}
        if len(known.addresses) < MOST:
            known.addresses[address] = now
        self._others[name] = known
        if len(self._others) > MOST:
            del self._others[next(iter(self._others))]

    def look(self, here: ThisNode, *, now: float) -> tuple[DifferenceChange, ...]:
        """Compare with what this node runs now; return what has begun to count, and what has ended."""
        self._here = here
        found: list[DifferenceChange] = []
        for name, each in list(self._others.items()):
            if now - each.at >= FORGOTTEN or here.marks.isdisjoint(each.facts.marks):
                del self._others[name]
                continue
            self._compare(each, now)
            found += self._changes(name, each, now)
        return tuple(found)

    def nodes(self, *, now: float, wall: float) -> tuple[OtherNode, ...]:
        """Return the other nodes by name; `wall` is Unix seconds at `now`."""
        shift = wall - now
        return tuple(
            OtherNode(
                name=name,
                address=_address(each),
                addresses=tuple(each.addresses),
                release=each.facts.release,
                configuration="" if each.facts.configuration == UNKNOWN else each.facts.configuration.hex(),
                condition=each.facts.condition.name.lower(),
                page=_page(each),
                heard_at=shift + each.at,
                silent=_is_silent(each, now),
                differs_since=None
                if each.configuration_since is None or not self._differs(each, now)
                else shift + each.configuration_since,
                judged=tuple(self._judged(each, now, shift=shift)),
            )
            for name, each in sorted(self._others.items())
        )

    def _compare(self, each: _Other, now: float) -> None:
        facts, here = each.facts, self._here
        if _is_silent(each, now):
            each.configuration_since, each.servers_since = None, {}
            return
        known = UNKNOWN not in (facts.configuration, here.configuration)
        if not known or facts.configuration == here.configuration:
            each.configuration_since = None
        elif each.configuration_since is None:
            each.configuration_since = now
        each.servers_since = {
            (key, up): each.servers_since.get((key, up), now)
            for key, up in facts.servers.items()
            if key in here.servers and here.servers[key].up != up
        }

    def _changes(self, name: str, each: _Other, now: float) -> Iterator[DifferenceChange]:
        judged = [f"{one.server} is {one.here} here" for one in self._judged(each, now, shift=0.0)]
        details = {
            Difference.CONFIGURATION: f"{each.facts.configuration.hex()} instead of "
            f"{self._here.configuration.hex()}"
            if self._differs(each, now)
            else "",
            Difference.VERDICTS: shortened(judged),
        }
        before = each.counting
        each.counting = frozenset(about for about, detail in details.items() if detail)
        for about, detail in details.items():
            # Of a silent node it is not known that a difference has ended.
            if (about in before) != (about in each.counting) and not _is_silent(each, now):
                yield DifferenceChange(node=name, about=about, detail=detail)

    def _differs(self, each: _Other, now: float) -> bool:
        return each.configuration_since is not None and now - each.configuration_since >= SETTLED

    def _judged(self, each: _Other, now: float, *, shift: float) -> Iterator[JudgedServer]:
        """Yield the servers that a node finds in another state for long enough, by name."""
        lasting = [
            (self._here.servers[key], since)
            for (key, _), since in each.servers_since.items()
            if key in self._here.servers and now - since >= self._here.servers[key].delay
        ]
        for server, since in sorted(lasting, key=lambda found: found[0].name):
            yield JudgedServer(server=server.name, here="up" if server.up else "down", since=shift + since)


def shortened(names: Collection[str], *, most: int = 3) -> str:
    """Return the first of several names, and how many more there are; "" for none."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(list(names)[:most]) + more


def _is_silent(each: _Other, now: float) -> bool:
    return now - each.at >= SILENT


def _page(each: _Other) -> str:
    """Return the address of a node's page: one without a host is at the address from which it reports."""
    scheme, _, host = each.facts.page.partition("://")
    if not host.startswith(":"):
        return each.facts.page
    address = _address(each)
    return f"{scheme}://{f'[{address}]' if ':' in address else address}{host}"


def _address(each: _Other) -> str:
    """Return the address by which a node has been heard for longest."""
    return next(iter(each.addresses), "")
