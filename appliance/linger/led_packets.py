"""The rules that lead packets to other nodes, in the kernel: made, renewed, made anew where they are gone."""

import contextlib
import errno
import time
from collections.abc import Callable, Iterable
from typing import Final

from appliance.core.linger import ruleset
from appliance.linger.own_connections import named
from appliance.linger.rules_guard import Entrances, RulesGuard, is_fresh
from appliance.net.netlink.connection_room import connection_times
from appliance.net.nftables.nftables import Nftables, NftablesError
from appliance.wire.nftables.nftables_answer import NftablesObject
from appliance.wire.nftables.nftables_commands import Family, delete_table, list_chain

FAMILIES: Final = {4: Family.IPV4, 6: Family.IPV6}

_TO_HEAR: Final = 2.0
"""Seconds for which elements of an earlier run stay as they are: nobody has been heard yet."""

_CHAINS: Final = ("prerouting", "strangers")
_Rules = tuple[Entrances, int, float]


class LedPackets:
    """The tables of both families. Functions raise NftablesError where the kernel refuses.

    The tables outlive this program, so that a restart ends no connection: their elements have a time-out.
    Beside each is a guard, which leads packets while somebody has flushed it, and goes with this program:
    `flushed` counts how often rules were gone.
    """

    def __init__(self, *, connect: Callable[[], Nftables] = Nftables) -> None:
        self.flushed = 0
        self._connect = connect
        self._nftables: Nftables | None = None
        self._guard = RulesGuard(connect=connect)
        self._made: dict[int, _Rules] = {}
        self._put: dict[int, tuple[ruleset.Elements, float]] = {}
        self._left_alone: dict[int, float] = {}

    @property
    def unguarded(self) -> str:
        """Return why there is no guard, empty where there is."""
        return self._guard.missing

    def lead(
        self,
        family: int,
        *,
        entrances: Entrances,
        elements: ruleset.Elements,
        port: int,
        longest: float,
    ) -> bool:
        """Have packets led as `elements` say; called again and again.

        Return whether they are: for a moment elements of an earlier run are left alone.
        """
        self._guard.follow(FAMILIES[family], entrances=entrances, elements=elements, longest=longest)
        now = time.monotonic()
        self._make(family, (entrances, port, longest), elements)
        if now < self._left_alone.get(family, 0.0):
            return False
        if is_fresh(self._put.get(family), elements, now):
            return True
        try:
            self._open().run(ruleset.refresh(FAMILIES[family], elements))
        except NftablesError as error:
            del self._made[family]
            if family not in self._put or not error.is_because(errno.ENOENT):
                self._put.pop(family, None)
                raise
            self.flushed += 1
            self._make(family, (entrances, port, longest), elements)
        self._put[family] = elements, now
        return True

    def look(self) -> None:
        """Look whether the rules still stand; those that do not are made anew when packets are led next."""
        for family in tuple(self._made):
            if not self._stands(FAMILIES[family]):
                self.flushed += 1
                del self._made[family]

    def remove(self, families: Iterable[int] = tuple(FAMILIES)) -> None:
        """Take the tables away, those of an earlier run too."""
        self._guard.close()
        for family in families:
            self._made.pop(family, None)
            self._put.pop(family, None)
            with contextlib.suppress(NftablesError):  # it is not there
                self._open().run(delete_table(FAMILIES[family], ruleset.TABLE))

    def close(self) -> None:
        """End the connections; the tables stay, their guards do not."""
        self._guard.close()
        nftables, self._nftables = self._nftables, None
        if nftables is not None:
            nftables.close()

    def _make(self, family: int, wanted: _Rules, elements: ruleset.Elements) -> None:
        if self._made.get(family) == wanted:
            return
        entrances, port, longest = wanted
        word = FAMILIES[family]
        known = self._is_there(word)
        script = ruleset.make(word, entrances, port=port, longest=longest, times=connection_times())
        rebuilt = family in self._put
        if rebuilt:
            # Packets come already, and until they are led they are answered by a reset.
            del self._put[family]
            script += "\n" + ruleset.refresh(word, elements)
        self._open().run(script)
        if known and not rebuilt:
            self._left_alone[family] = time.monotonic() + _TO_HEAR
        elif not known:
            for each in named(word, elements.addresses, table=ruleset.TABLE):
                self._open().run(each)
        self._made[family] = wanted

    def _is_there(self, family: Family) -> bool:
        return self._listed(family, "prerouting") is not None

    def _stands(self, family: Family) -> bool:
        return all(any(each.kind == "rule" for each in self._listed(family, name) or ()) for name in _CHAINS)

    def _listed(self, family: Family, chain: str) -> tuple[NftablesObject, ...] | None:
        """Return what a chain holds, None where it is not there."""
        try:
            return self._open().run(list_chain(family, ruleset.TABLE, chain))
        except NftablesError as error:
            if error.is_because(errno.ENOENT):
                return None
            raise

    def _open(self) -> Nftables:
        if self._nftables is None:
            self._nftables = self._connect()
        return self._nftables
