"""Strays: packets of shared addresses that belong to no connection of this node, by what other nodes report.

A node that has the connection of a forwarded packet says so: further packets go to it alone. A node that has
not denies it. What all nodes deny is nobody's, and the kernel answers it with a reset.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from appliance.wire.linger_strays import Ends

OWNED: Final = 30.0
"""Seconds for which packets go to the node that had the connection."""

TOLD: Final = 10
"""Seconds for which a node does not repeat that it has a connection."""

DENIED: Final = 1.0
"""Seconds for which a denial counts: all nodes get a packet at about the same time."""

NOBODYS: Final = 120
"""Seconds for which the next packet of a connection that no node has is answered with a reset.

A client doubles the time until it sends a packet again (RFC 6298 section 5.5), Linux up to 120 s.
"""

NOBODYS_OF_MANY: Final = 10
"""Seconds of the same for more than `MOST_NOBODYS` connections: the first packets sent again come sooner."""

MOST_NOBODYS: Final = 16384
"""Connections of no node that are remembered for `NOBODYS` seconds."""

MOST_OWNED: Final = 16384
"""Connections whose node is known; packets of others go to all nodes."""

MOST_DENIED: Final = 4096
"""Connections whose denials are counted at a time."""

AT_ONCE: Final = 1024
"""Changes of elements of one kind in one turn."""

_EDGE: Final = 1.0  # seconds around the end of an element in which it may be there or not
_RENEWED: Final = 5.0  # seconds before an element is renewed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Owned:
    """The node that has a connection, in the kernel since `at`."""

    node: str
    at: float

    def is_there(self, now: float) -> bool:
        return now - self.at < OWNED - _EDGE

    def is_gone(self, now: float) -> bool:
        return now - self.at > OWNED + _EDGE


@dataclass(frozen=True, slots=True, kw_only=True)
class StrayChanges:
    """What changes in the kernel's elements, in this order.

    All owners are removed if `flushed`, then those of `removed`; `owned` are added, each with its node. With
    `revoked` nothing is nobody's any more, as a node has come that may have it; then `nobodys` are added, for
    `seconds`.
    """

    flushed: bool = False
    revoked: bool = False
    removed: tuple[Ends, ...] = ()
    owned: tuple[tuple[Ends, str], ...] = ()
    nobodys: tuple[Ends, ...] = ()
    seconds: int = NOBODYS


class Strays:
    """What is known of the strays of one family."""

    def __init__(self) -> None:
        self._owners: dict[Ends, _Owned] = {}  # the oldest first
        self._found: dict[Ends, str] = {}
        self._left: dict[Ends, None] = {}
        self._denied: dict[Ends, dict[str, float]] = {}
        self._lasting: deque[tuple[float, int]] = deque()  # the end of each time, and of how many
        self._flushed = False
        self._living: frozenset[str] = frozenset()

    def found(self, ends: Ends, *, node: str) -> None:
        """Note that a node has a connection."""
        self._denied.pop(ends, None)
        if len(self._found) < MOST_OWNED:
            self._found[ends] = node

    def denied(self, ends: Ends, *, node: str, now: float) -> None:
        """Note that a node does not have a connection whose packet was forwarded to it.

        What is denied beside the node that has it does not count once that one has given it away.
        """
        known = self._owners.get(ends)
        owner = self._found.get(ends) or (known.node if known is not None and known.is_there(now) else node)
        if owner != node:
            return
        if self._found.pop(ends, None) == node:
            self._denied.pop(ends, None)
        if known is not None and known.node == node and ends not in self._left:
            self._left[ends] = None
            self._denied.pop(ends, None)
        if ends in self._denied or len(self._denied) < MOST_DENIED:
            self._denied.setdefault(ends, {})[node] = now

    @property
    def pending(self) -> bool:
        """Whether reports of nodes are still to be put into the kernel, or counted."""
        return bool(self._flushed or self._found or self._left or self._denied)

    def restart(self) -> None:
        """Add all owners again: the kernel's elements are gone."""
        self._flushed = True
        self._found = {**{ends: each.node for ends, each in self._owners.items()}, **self._found}
        self._owners.clear()
        self._left.clear()

    def changes(self, others: Mapping[str, tuple[str, ...]], *, settled: bool, now: float) -> StrayChanges:
        """Return what is due; `others` are the nodes that may have connections of each address."""
        before, self._living = self._living, frozenset(node for nodes in others.values() for node in nodes)
        revoked = not self._living <= before
        if revoked:
            self._denied.clear()
        self._forget(self._living, now)
        flushed, self._flushed = self._flushed, False
        removed = [each for each in self._left if each in self._owners and self._owners[each].is_there(now)]
        self._left.clear()
        for each in removed:
            del self._owners[each]
        replaced, owned = self._put(now)
        nobodys = self._nobodys(others, now) if settled else ()
        return StrayChanges(
            flushed=flushed,
            revoked=revoked,
            removed=(*removed, *replaced),
            owned=owned,
            nobodys=nobodys,
            seconds=self._seconds(len(nobodys), now) if nobodys else NOBODYS,
        )

    def _forget(self, living: frozenset[str], now: float) -> None:
        while self._owners and next(iter(self._owners.values())).is_gone(now):
            del self._owners[next(iter(self._owners))]
        if any(each.node not in living for each in self._owners.values()):
            self.restart()
        self._found = {ends: node for ends, node in self._found.items() if node in living}

    def _put(self, now: float) -> tuple[list[Ends], tuple[tuple[Ends, str], ...]]:
        """Return the owners to remove and to add of those found, as many as one turn takes."""
        replaced: list[Ends] = []
        owned: list[tuple[Ends, str]] = []
        for ends, node in list(islice(self._found.items(), AT_ONCE)):
            known = self._owners.get(ends)
            if known is not None and not known.is_there(now):
                continue  # it cannot be replaced, nor added, for a moment
            del self._found[ends]
            if known is not None:
                if known.node == node and now - known.at < _RENEWED:
                    continue
                del self._owners[ends]
                replaced.append(ends)
            if len(self._owners) < MOST_OWNED:
                self._owners[ends] = _Owned(node=node, at=now)
                owned.append((ends, node))
        return replaced, tuple(owned)

    def _nobodys(self, others: Mapping[str, tuple[str, ...]], now: float) -> tuple[Ends, ...]:
        found: list[Ends] = []
        for ends, nodes in list(self._denied.items()):
            denying = {node for node, at in nodes.items() if now - at < DENIED}
            asked = others.get(ends[2], ())
            if asked and denying.issuperset(asked) and len(found) < AT_ONCE:
                found.append(ends)
            elif denying:
                continue
            del self._denied[ends]
        return tuple(found)

    def _seconds(self, count: int, now: float) -> int:
        """Return for how long so many more connections of no node are remembered."""
        while self._lasting and self._lasting[0][0] <= now:
            self._lasting.popleft()
        if count + sum(each for _, each in self._lasting) > MOST_NOBODYS:
            return NOBODYS_OF_MANY
        self._lasting.append((now + NOBODYS, count))
        return NOBODYS
