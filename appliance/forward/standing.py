"""Whether the kernel's tables for forwarding are as last written.

Each transaction of any program increases the generation of nftables, so most checks are one query. If it has
changed, our tables are compared with their state after our last transaction: rules, sets, policies, all but
the counters. Other programs' tables may change as often as they like.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from appliance.core.forwarding.ruleset import TABLE
from appliance.net.netlink.table_contents import TableContents
from appliance.net.nftables.nftables import NftablesError
from appliance.wire.nftables.nftables_commands import Family

_WORD: Final = 0xFFFFFFFF


class Standing:
    """The content of each table as last written. Functions raise NftablesError."""

    def __init__(self, *, connect: Callable[[], TableContents] = TableContents) -> None:
        self._connect = connect
        self._contents: TableContents | None = None
        self._generation: int | None = None
        self._digests: dict[Family, bytes] = {}

    @contextmanager
    def writing(self, family: Family) -> Iterator[None]:
        """Remember the content of the table after the one transaction in the block.

        If another program had a transaction at the same moment, it is unknown whose work the content is: then
        it is not remembered, and `knows` reports that.
        """
        with _one_error():
            before = self._ask().generation()
        yield
        with _one_error():
            digest = self._ask().digest(family, TABLE)
            after = self._ask().generation()
        if (after - before) & _WORD != 1:
            self._digests.pop(family, None)
            return
        if self._generation == before or not self._digests:
            self._generation = after
        self._digests[family] = digest

    def knows(self, family: Family) -> bool:
        """Return whether the content of this table is known."""
        return family in self._digests

    def unchanged(self) -> bool:
        """Return whether the tables with known content still have it."""
        if not self._digests:
            return True
        with _one_error():
            generation = self._ask().generation()
            if generation == self._generation:
                return True
            now = {family: self._ask().digest(family, TABLE) for family in self._digests}
        if now != self._digests:
            return False
        self._generation = generation  # a later change has a higher one
        return True

    def forget(self) -> None:
        """Forget the content of all tables."""
        self._digests.clear()

    def _ask(self) -> TableContents:
        if self._contents is None:
            self._contents = self._connect()
        return self._contents


@contextmanager
def _one_error() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NftablesError(f"the kernel does not list its tables: {error}") from error
