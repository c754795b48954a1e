"""The rules that lead packets to other nodes, in the kernel: made, renewed, made anew where they are gone."""

import contextlib
import errno
import time
from collections.abc import Callable, Iterable
from typing import Final

from appliance.core.linger import rules
from appliance.net.netlink.socket_connections import SocketConnections, both_ways
from appliance.net.nftables.nftables import Nftables, NftablesError
from appliance.wire.nftables.nftables_transaction import Family, delete_table, list_chain

FAMILIES: Final = {4: Family.IPV4, 6: Family.IPV6}

_TO_HEAR: Final = 2.0
"""Seconds for which elements of an earlier run stay as they are: nobody has been heard yet."""

Entrances = tuple[tuple[str, str], ...]
_Rules = tuple[Entrances, int, float]


class LedPackets:
    """The tables of both families. Functions raise NftablesError where the kernel refuses.

    The tables outlive this program, so that a restart ends no connection: their elements have a time-out.
    """

    def __init__(self, *, connect: Callable[[], Nftables] = Nftables) -> None:
        self._connect = connect
        self._nftables: Nftables | None = None
        self._made: dict[int, _Rules] = {}
        self._put: dict[int, tuple[rules.Elements, float]] = {}
        self._left_alone: dict[int, float] = {}

    def lead(
        self,
        family: int,
        *,
        entrances: Entrances,
        elements: rules.Elements,
        port: int,
        longest: float,
    ) -> bool:
        """Have packets led as `elements` say; called again and again.

        Return whether they are: for a moment elements of an earlier run are left alone.
        """
        now = time.monotonic()
        self._make(family, (entrances, port, longest), elements.addresses)
        if now < self._left_alone.get(family, 0.0):
            return False
        before = self._put.get(family)
        renewed = rules.RENEWED_SETTLED if elements.settled else rules.RENEWED
        if before is not None and before[0] == elements and now - before[1] < renewed:
            return True
        try:
            self._open().run_text(rules.refresh(FAMILIES[family], elements))
        except NftablesError:
            self._made.pop(family, None)  # somebody has flushed it: it is made anew
            self._put.pop(family, None)
            raise
        self._put[family] = elements, now
        return True

    def remove(self, families: Iterable[int] = tuple(FAMILIES)) -> None:
        """Take the tables away, those of an earlier run too."""
        for family in families:
            self._made.pop(family, None)
            self._put.pop(family, None)
            with contextlib.suppress(NftablesError):  # it is not there
                self._open().run(delete_table(FAMILIES[family], rules.TABLE))

    def close(self) -> None:
        """End the connection; the tables stay."""
        nftables, self._nftables = self._nftables, None
        if nftables is not None:
            nftables.close()

    def _make(self, family: int, wanted: _Rules, addresses: Iterable[str]) -> None:
        if self._made.get(family) == wanted:
            return
        entrances, port, longest = wanted
        word = FAMILIES[family]
        known = self._is_there(word)
        self._open().run_text(rules.make(word, entrances, port=port, longest=longest))
        if known and family not in self._put:
            self._left_alone[family] = time.monotonic() + _TO_HEAR
        elif not known:
            self._spare(word, addresses)
        self._made[family] = wanted

    def _spare(self, family: Family, addresses: Iterable[str]) -> None:
        """Name the connections that were here before the kernel began to track them: none of another node."""
        listed = SocketConnections()
        try:
            for address in addresses:
                if script := rules.own(family, both_ways(listed.at(address))):
                    self._open().run_text(script)
        except OSError as error:
            raise NftablesError(f"the connections of this machine cannot be listed: {error}") from error
        finally:
            listed.close()

    def _is_there(self, family: Family) -> bool:
        try:
            self._open().run(list_chain(family, rules.TABLE, "prerouting"))
        except NftablesError as error:
            if error.is_because(errno.ENOENT):
                return False
            raise
        return True

    def _open(self) -> Nftables:
        if self._nftables is None:
            self._nftables = self._connect()
        return self._nftables
