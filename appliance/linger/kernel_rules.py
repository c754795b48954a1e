"""The kernel rules that forward packets to other nodes: made, renewed, and restored if they are gone."""

import contextlib
import errno
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from appliance.core.linger import ruleset, shared_address_rules
from appliance.core.linger.strays import StrayChanges
from appliance.core.linger.tunnel import Tunnel
from appliance.net.netlink.connection_room import connection_times
from appliance.net.netlink.socket_connections import SocketConnections, both_ways
from appliance.net.nftables.nftables import Nftables, NftablesError, NftablesUser, listed_chain
from appliance.net.nftables.owned_table import OwnedTable
from appliance.wire.nftables.nftables_answer import NftablesObject
from appliance.wire.nftables.nftables_commands import Family, delete_table

Entrances = tuple[tuple[str, str], ...]

FAMILIES: Final = {4: Family.IPV4, 6: Family.IPV6}

_TO_HEAR: Final = 2.0
"""Seconds for which elements of an earlier run stay as they are: no report has arrived yet."""

_CHAINS: Final = ("prerouting", "strangers")
Ends = tuple[str, int, str, int]
"""A connection: the client's address and port, and ours."""

_Rules = tuple[Entrances, int, float, bool, Tunnel | None]
_MISSED: Final = (errno.ENOENT, errno.EEXIST, errno.ENFILE)
"""Elements are not as expected: some are gone, others are there, or an earlier run's fill the set."""


def named(family: Family, addresses: Iterable[str], *, table: str) -> Iterator[str]:
    """Yield the scripts that add them to a table, as they are no other node's. Raises NftablesError."""
    listed = SocketConnections()
    try:
        for address in addresses:
            if script := ruleset.own(family, both_ways(listed.at(address)), table=table):
                yield script
    except OSError as error:
        raise NftablesError(f"the connections of this machine cannot be listed: {error}") from error
    finally:
        listed.close()


class RulesGuard:
    """The guards of both families. A kernel without table owners (before 5.12) has none."""

    def __init__(self, *, connect: Callable[[], Nftables] = Nftables) -> None:
        self._connect = connect
        self._table = OwnedTable(connect=connect)
        self._made: dict[Family, tuple[Entrances, float, bool, Tunnel | None]] = {}
        self._put: dict[Family, tuple[ruleset.Elements, float]] = {}

    @property
    def missing(self) -> str:
        """Return why the kernel has no guard, or a faulty one; empty if the guard is in order."""
        return self._table.refused

    def follow(
        self,
        family: Family,
        *,
        entrances: Entrances,
        elements: ruleset.Elements,
        longest: float,
        tunnel: Tunnel | None = None,
    ) -> None:
        """Make the guard forward packets as `elements` say; called repeatedly."""
        now = time.monotonic()
        if not self._make(family, entrances, elements, longest, tunnel):
            return
        if is_fresh(self._put.get(family), elements, now):
            return
        self._put.pop(family, None)
        if self._table.write(ruleset.refresh(family, elements, table=ruleset.GUARD)):
            self._put[family] = elements, now

    def close(self) -> None:
        """Have the kernel remove the guards."""
        self._table.close()
        self._table = OwnedTable(connect=self._connect)
        self._made.clear()
        self._put.clear()

    def learn(self, family: Family, changes: StrayChanges) -> None:
        """Change the elements of strays, if there is a guard."""
        if family in self._made:
            self._table.write(shared_address_rules.learned(family, changes, table=ruleset.GUARD))

    def change_owner(
        self,
        family: Family,
        *,
        ours: Iterable[tuple[str, int, str, int]],
        others: Iterable[tuple[str, int, str, int]],
    ) -> None:
        """List connections that came to this node, and unlist those of others, if there is a guard."""
        if family in self._made:
            self._table.write(ruleset.change_owner(family, ours=ours, others=others, table=ruleset.GUARD))

    def _make(
        self,
        family: Family,
        entrances: Entrances,
        elements: ruleset.Elements,
        longest: float,
        tunnel: Tunnel | None,
    ) -> bool:
        shared = elements.shared is not None
        wanted = entrances, longest, shared, tunnel
        if self._made.get(family) == wanted:
            return True
        script = ruleset.guard(family, entrances, longest=longest, shared=shared, tunnel=tunnel)
        if not self._table.write(script):
            return False
        self._put.pop(family, None)
        try:
            ours = named(family, elements.all_addresses, table=ruleset.GUARD)
            written = all(self._table.write(each) for each in ours)
        except NftablesError as error:
            self._table.put_off(str(error))
            return False
        if written:
            self._made[family] = wanted
        return written


def is_fresh(put: tuple[ruleset.Elements, float] | None, elements: ruleset.Elements, now: float) -> bool:
    """Return whether elements need not be added again, given those added last and the time."""
    renewed = ruleset.RENEWED_SETTLED if elements.pressing else ruleset.RENEWED
    return put is not None and put[0] == elements and now - put[1] < renewed


class ForwardingRules(NftablesUser):
    """The tables of both families. Functions raise NftablesError if the kernel refuses.

    The tables outlive this program, so that a restart ends no connection: their elements have a time-out.
    Each table has a guard, which forwards packets while another program has flushed the table, and which goes
    with this program: `flushed` counts how often rules were gone.
    """

    def __init__(self, *, connect: Callable[[], Nftables] = Nftables) -> None:
        super().__init__(connect)
        self.flushed = 0
        self._guard = RulesGuard(connect=connect)
        self._made: dict[int, _Rules] = {}
        self._put: dict[int, tuple[ruleset.Elements, float]] = {}
        self._left_alone: dict[int, float] = {}

    @property
    def unguarded(self) -> str:
        """Return why there is no guard, empty if there is one."""
        return self._guard.missing

    def lead(
        self,
        family: int,
        *,
        entrances: Entrances,
        elements: ruleset.Elements,
        port: int,
        longest: float,
        tunnel: Tunnel | None = None,
    ) -> bool:
        """Forward packets as `elements` say; called repeatedly.

        Return whether they are forwarded: for a moment elements of an earlier run are left alone.
        """
        self._guard.follow(
            FAMILIES[family], entrances=entrances, elements=elements, longest=longest, tunnel=tunnel
        )
        now = time.monotonic()
        rules = entrances, port, longest, elements.shared is not None, tunnel
        self._make(family, rules, elements)
        if now < self._left_alone.get(family, 0.0):
            return False
        if is_fresh(self._put.get(family), elements, now):
            return True
        try:
            self._open().run(ruleset.refresh(FAMILIES[family], elements))
        except NftablesError as error:
            del self._made[family]
            known = family in self._put
            if not error.is_because(errno.ENOENT) or (not known and self._is_there(FAMILIES[family])):
                self._put.pop(family, None)
                raise
            self.flushed += 1
            if not known:
                return False
            self._make(family, rules, elements)
        self._put[family] = elements, now
        return True

    def learn(self, family: int, changes: StrayChanges) -> bool:
        """Change the elements of strays; return whether they were as the changes expect."""
        word = FAMILIES[family]
        if changes.nobodys or changes.revoked:
            self._guard.learn(word, replace(changes, flushed=False, removed=(), owned=()))
        if script := shared_address_rules.learned(word, changes, table=ruleset.TABLE):
            try:
                self._open().run(script)
            except NftablesError as error:
                if not any(error.is_because(each) for each in _MISSED):
                    raise
                return False
        return True

    def note(self, script: str) -> None:
        """Run a script about noted strays; it does nothing if the table is gone for the moment, or full."""
        try:
            self._open().run(script)
        except NftablesError as error:
            if not any(error.is_because(each) for each in _MISSED):
                raise

    def change_owner(self, family: int, *, ours: Iterable[Ends], others: Iterable[Ends]) -> None:
        """Let packets of connections that came to this node be its own, and forward those of others again."""
        word = FAMILIES[family]
        ours, others = tuple(ours), tuple(others)
        self._guard.change_owner(word, ours=ours, others=others)
        self.note(ruleset.change_owner(word, ours=ours, others=others))

    def look(self) -> None:
        """Check whether the rules are intact; missing ones are restored when packets are forwarded next."""
        for family in tuple(self._made):
            if not self._stands(FAMILIES[family]):
                self.flushed += 1
                del self._made[family]

    def remove(self, families: Iterable[int] = tuple(FAMILIES)) -> None:
        """Remove the tables, including those of an earlier run."""
        self._guard.close()
        for family in families:
            self._made.pop(family, None)
            self._put.pop(family, None)
            with contextlib.suppress(NftablesError):  # it does not exist
                self._open().run(delete_table(FAMILIES[family], ruleset.TABLE))

    def close(self) -> None:
        """Close the netlink connections; the tables stay, their guards do not."""
        self._guard.close()
        self._disconnect()

    def _make(self, family: int, wanted: _Rules, elements: ruleset.Elements) -> None:
        if self._made.get(family) == wanted:
            return
        entrances, port, longest, shared, tunnel = wanted
        word = FAMILIES[family]
        known = self._is_there(word)
        script = ruleset.make(
            word,
            entrances,
            port=port,
            longest=longest,
            times=connection_times(),
            shared=shared,
            tunnel=tunnel,
        )
        rebuilt = family in self._put
        if rebuilt:
            # Packets already arrive, and until they are forwarded the kernel answers them with a reset.
            del self._put[family]
            script += "\n" + ruleset.refresh(word, elements)
        self._open().run(script)
        if known and not rebuilt:
            self._left_alone[family] = time.monotonic() + _TO_HEAR
        elif not known:
            self._name(word, elements)
        self._made[family] = wanted

    def _name(self, family: Family, elements: ruleset.Elements) -> None:
        """Add this machine's connections; after a flush meanwhile the next look makes all of it again."""
        try:
            for each in named(family, elements.all_addresses, table=ruleset.TABLE):
                self._open().run(each)
        except NftablesError as error:
            if not error.is_because(errno.ENOENT):
                raise

    def _is_there(self, family: Family) -> bool:
        return self._listed(family, "prerouting") is not None

    def _stands(self, family: Family) -> bool:
        return all(any(each.kind == "rule" for each in self._listed(family, name) or ()) for name in _CHAINS)

    def _listed(self, family: Family, chain: str) -> tuple[NftablesObject, ...] | None:
        """Return the contents of a chain, None if there is no such chain."""
        return listed_chain(self._open(), family, ruleset.TABLE, chain)
