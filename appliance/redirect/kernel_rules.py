"""The rules of redirects in the kernel: made, removed, and restored if another program has removed them."""

import contextlib
import errno
from collections.abc import Callable, Iterable
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.core.redirect.rules import (
    FLOWS_TABLE,
    MONITORS_CHAIN,
    PREROUTING,
    TABLE,
    Redirection,
    is_monitors,
    names_on,
    script,
)
from appliance.net.nftables.nftables import Nftables, NftablesError, NftablesUser, listed_chain
from appliance.wire.nftables.nftables_answer import NftablesObject
from appliance.wire.nftables.nftables_commands import Family, delete_table, list_chain

_UNKNOWN_TO_KERNEL: Final = (errno.ENOENT, errno.EOPNOTSUPP, errno.EINVAL)
_BELONGS_TO_ANOTHER: Final = (
    "the table {table} belongs to another process: does another appliance run in this network?"
)


class KernelRules(NftablesUser):
    """The rules in each used family; `installed` are those in the kernel, None for unknown.

    `owned` is whether the kernel removes the rules when this process ends in any way, `guarded` whether a new
    connection is redirected only if a socket listens. Current kernels do both; on an older one each is logged
    once. Every function raises NftablesError if the kernel refuses.
    """

    def __init__(self, log: FilteringBoundLogger, *, connect: Callable[[], Nftables] = Nftables) -> None:
        super().__init__(connect)
        self.owned = True
        self.guarded = True
        self.installed: frozenset[Redirection] | None = None
        self._log = log
        self._families: tuple[Family, ...] = ()

    def were_on(self) -> frozenset[str]:
        """Return the names of the redirects that were on when this program last ended."""
        found = (self._listed(each, FLOWS_TABLE, PREROUTING) for each in Family)
        return frozenset(name for objects in found for name in names_on(objects))

    def taken_by_monitor(self, families: Iterable[Family]) -> frozenset[Family]:
        """Return the families in which OpenShift's monitor has its own rules."""
        return frozenset(each for each in families if is_monitors(self._listed(each, *MONITORS_CHAIN)))

    def install(self, families: Iterable[Family], wanted: Iterable[Redirection]) -> bool:
        """Make the rules the wanted ones, in one transaction; return whether anything had to be done.

        Families used earlier are emptied, so that nothing of an earlier configuration stays.
        """
        used = tuple(dict.fromkeys((*self._families, *families)))
        rules = frozenset(wanted)
        if rules == self.installed and used == self._families and self._stand(used, rules):
            return False
        self.installed = None
        self._make_tables(used)
        self._put(used, rules)
        self.installed, self._families = rules, used
        return True

    def close(self, *, keep_flows: bool) -> None:
        """Remove everything; with `keep_flows` redirected connections continue."""
        nftables, self._nftables = self._nftables, None
        if nftables is None:
            return
        tables = (TABLE,) if keep_flows else (TABLE, FLOWS_TABLE)
        for family in Family:
            for table in tables:
                with contextlib.suppress(NftablesError):  # it does not exist, or is another appliance's
                    nftables.run(delete_table(family, table))
        nftables.close()

    def _listed(self, family: Family, table: str, chain: str) -> tuple[NftablesObject, ...]:
        """Return a chain with its rules, nothing if the kernel has no such table or chain."""
        return listed_chain(self._open(), family, table, chain) or ()

    def _stand(self, families: Iterable[Family], rules: frozenset[Redirection]) -> bool:
        """Return whether both tables still hold rules: another program may have flushed what it could."""
        return all(
            any(each.kind == "rule" for each in self._listed(family, table, PREROUTING))
            for family in families
            for table in self._tables_with_rules(family, rules)
        )

    @staticmethod
    def _tables_with_rules(family: Family, rules: frozenset[Redirection]) -> tuple[str, ...]:
        return (FLOWS_TABLE, TABLE) if any(each.family is family for each in rules) else (FLOWS_TABLE,)

    def _make_tables(self, families: tuple[Family, ...]) -> None:
        """Make tables that we own, or ordinary tables if the kernel has no ownership."""
        if not (self.owned and self._own_tables(families)):
            self._open().run("\n".join(f"add table {each.value} {TABLE}" for each in families))

    def _own_tables(self, families: tuple[Family, ...]) -> bool:
        nftables = self._open()
        try:
            nftables.own_tables(families, TABLE)
        except NftablesError:
            self._remove_leftovers(nftables, families)
        else:
            return True
        try:
            nftables.own_tables(families, TABLE)
        except NftablesError as error:
            if not any(map(error.is_because, _UNKNOWN_TO_KERNEL)):
                raise
            self.owned = False
            self._log.warning("redirect-not-owned", reason=str(error))
        return self.owned

    @staticmethod
    def _remove_leftovers(nftables: Nftables, families: tuple[Family, ...]) -> None:
        """Remove what an earlier run left in tables without an owner: we cannot acquire them."""
        for family in families:
            try:
                nftables.run(delete_table(family, TABLE))
            except NftablesError as error:
                if error.is_because(errno.EPERM) and _is_there(nftables, family):
                    raise NftablesError(_BELONGS_TO_ANOTHER.format(table=TABLE)) from error

    def _put(self, families: tuple[Family, ...], rules: frozenset[Redirection]) -> None:
        ordered = sorted(rules, key=lambda each: (each.name, str(each.source)))
        nftables = self._open()
        try:
            nftables.run(script(families, ordered, guarded=self.guarded))
        except NftablesError as error:
            if not (self.guarded and any(map(error.is_because, _UNKNOWN_TO_KERNEL))):
                raise
            reason = str(error)
        else:
            return
        nftables.run(script(families, ordered, guarded=False))
        self.guarded = False  # after a success: the reason may be a different one next time
        self._log.warning("redirect-not-guarded", reason=reason)


def _is_there(nftables: Nftables, family: Family) -> bool:
    with contextlib.suppress(NftablesError):
        nftables.run(list_chain(family, TABLE, PREROUTING))
        return True
    return False
