"""The guard of the rules that forward packets: a second table, which does so while the first is missing."""

import time
from collections.abc import Callable, Iterable

from appliance.core.linger import ruleset, shared_rules
from appliance.core.linger.strays import StrayChanges
from appliance.core.linger.tunnel import Tunnel
from appliance.linger.own_connections import named
from appliance.net.nftables.nftables import Nftables, NftablesError
from appliance.net.nftables.owned_table import OwnedTable
from appliance.wire.nftables.nftables_commands import Family

Entrances = tuple[tuple[str, str], ...]


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
            self._table.write(shared_rules.learned(family, changes, table=ruleset.GUARD))

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
