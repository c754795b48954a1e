"""The rules for shared addresses in Python: what becomes of one packet, by the elements of a node's tables.

The kernel's rules are compared with them, and the invariants of whole clusters are shown by them.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from appliance.core.linger.shared_address_rules import GIVEN, SharedElements
from appliance.core.linger.strays import OWNED, TOLD, StrayChanges
from appliance.wire.linger_strays import Ends

_REFRESHED = 24.0
_ALONE = 1.0


class Kind(StrEnum):
    """A packet by its flags: the first one, a server's answer to it, one of a connection, its end."""

    SYN = "syn"
    ANSWER = "syn-ack"
    ACK = "ack"
    FIN = "fin"
    RST = "rst"


class Fate(StrEnum):
    """What becomes of a packet."""

    TAKEN = "taken"
    """This node's own stack gets it: its connection, or an answer with a reset."""
    SENT = "sent"
    """Copies go to other nodes."""
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What becomes of a packet, to which nodes it is sent, and the set in which it is noted, "" for none."""

    fate: Fate
    nodes: frozenset[str] = frozenset()
    noted: str = ""


@dataclass(slots=True)
class Tables:
    """The elements of one node; those with a time-out have their end. `connections` is conntrack."""

    connections: set[Ends] = field(default_factory=set)
    shared: SharedElements = field(default_factory=SharedElements)
    refreshed_at: float = float("-inf")
    owner: dict[Ends, tuple[str, float]] = field(default_factory=dict)
    nobody: dict[Ends, float] = field(default_factory=dict)
    told: dict[tuple[Ends, bytes], float] = field(default_factory=dict)
    given: dict[Ends, float] = field(default_factory=dict)
    found: set[tuple[Ends, bytes]] = field(default_factory=set)
    denied: set[tuple[Ends, bytes]] = field(default_factory=set)
    closing: set[tuple[Ends, bytes]] = field(default_factory=set)

    def refresh(self, elements: SharedElements, now: float) -> None:
        """Replace the elements, as `shared_rules.refresh` does."""
        self.shared, self.refreshed_at = elements, now

    def learn(self, changes: StrayChanges, now: float) -> None:
        """Change owners, as `shared_rules.learned` does: what is not as expected is refused as a whole."""
        if changes.flushed:
            self.owner.clear()
        self.owner = {ends: each for ends, each in self.owner.items() if each[1] > now}
        for ends in changes.removed:
            del self.owner[ends]
        for ends, node in changes.owned:
            assert self.owner.setdefault(ends, (node, now + OWNED))[0] == node, "nft would refuse it"
        if changes.revoked:
            self.nobody.clear()
        for ends in changes.nobodys:
            self.nobody.setdefault(ends, now + changes.seconds)

    def tell(self, now: float) -> tuple[set[tuple[Ends, bytes]], set[tuple[Ends, bytes]]]:
        """Return what was noted, found and denied, and note that it is told."""
        found, denied = (
            self.found,
            self.denied | {each for each in self.closing if each[0] not in self.connections},
        )
        self.found, self.denied, self.closing = set(), set(), set()
        for each in found:
            self.told.setdefault(each, now + TOLD)
        return found, denied

    def decide(self, kind: Kind, ends: Ends, mac: bytes, now: float) -> Decision:
        """Return what becomes of a packet that came from this MAC, and note what is to be told."""
        gone = now - self.refreshed_at >= _REFRESHED or ends[2] not in self.shared.others
        if gone or kind is Kind.SYN:
            return Decision(fate=Fate.TAKEN)
        if ends in self.connections:
            return Decision(fate=Fate.TAKEN, noted=self._note(ends, mac, now))
        if mac not in self.shared.macs:
            return self._stray(ends, now)
        if kind in (Kind.RST, Kind.ANSWER) or self.given.get(ends, now) > now:
            return Decision(fate=Fate.DROPPED)
        noted = "denied" if kind is Kind.ACK else "closing"
        (self.denied if kind is Kind.ACK else self.closing).add((ends, mac))
        return Decision(fate=Fate.DROPPED, noted=noted)

    def give(self, ends: Ends, now: float) -> None:
        """Note that another node has a connection now."""
        self.connections.discard(ends)
        self.given[ends] = now + GIVEN

    def _note(self, ends: Ends, mac: bytes, now: float) -> str:
        if mac not in self.shared.macs or self.told.get((ends, mac), now) > now:
            return ""
        self.found.add((ends, mac))
        return "found"

    def _stray(self, ends: Ends, now: float) -> Decision:
        if self.nobody.pop(ends, now) > now:
            return Decision(fate=Fate.TAKEN)
        node, until = self.owner.get(ends, ("", now))
        if until > now:
            return Decision(fate=Fate.SENT, nodes=frozenset({node}))
        if ends[2] in self.shared.alone and now - self.refreshed_at < _ALONE:
            return Decision(fate=Fate.TAKEN)
        others = frozenset(self.shared.others[ends[2]])
        return Decision(fate=Fate.SENT if others else Fate.DROPPED, nodes=others)
