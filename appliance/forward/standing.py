"""Whether the kernel's tables of forwarding still hold what was written last.

Each transaction of anybody makes the generation of nftables one higher, so most looks are one question. Where
it has changed, what our tables hold is compared with what they held after our last transaction: rules, sets,
policies, all but the counters. Other programs' tables may change as often as they like.
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
    """What each table held when it was written last. Functions raise NftablesError."""

    def __init__(self, *, connect: Callable[[], TableContents] = TableContents) -> None:
        self._connect = connect
        self._contents: TableContents | None = None
        self._generation: int | None = None
        self._digests: dict[Family, bytes] = {}

    @contextmanager
    def writing(self, family: Family) -> Iterator[None]:
        """Remember what the table holds after the one transaction in the block.

        Where somebody else had a transaction at the same moment, nobody knows whose work that is: then it is
        not remembered, and `knows` says so.
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
        """Say whether it is known what this table holds."""
        return family in self._digests

    def unchanged(self) -> bool:
        """Say whether the tables of which it is known hold that still."""
        if not self._digests:
            return True
        with _one_error():
            generation = self._ask().generation()
            if generation == self._generation:
                return True
            now = {family: self._ask().digest(family, TABLE) for family in self._digests}
        if now != self._digests:
            return False
        self._generation = generation  # a change since then is a higher one
        return True

    def forget(self) -> None:
        """Know nothing of any table any more."""
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
        raise NftablesError(f"the kernel does not tell its tables: {error}") from error
