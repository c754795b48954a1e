"""Packets of connections under way to another node, held back in both directions while they are."""

import contextlib
import time
from collections.abc import Callable, Collection
from typing import Final

from appliance.core.migration import ruleset
from appliance.core.migration.ruleset import Ends
from appliance.net.nftables.nftables import Nftables, NftablesError, NftablesUser
from appliance.wire.nftables.nftables_commands import Family

UNDER_WAY: Final = 10
"""Seconds after which packets get through although no program ended the hold: longer than any batch takes."""

AFTERWARDS: Final = 1
"""Seconds for which packets that were late find no socket here, and would be answered with a reset."""

_LATER: Final = 0.5
"""Seconds that the kernel may begin to count after us."""


class HeldPackets(NftablesUser):
    """The tables of both families, which exist while something is held. Functions raise NftablesError."""

    def __init__(self, *, connect: Callable[[], Nftables] = Nftables) -> None:
        super().__init__(connect)
        self._made: set[Family] = set()
        self._until: dict[Ends, float] = {}

    def hold(self, connections: Collection[Ends], *, seconds: int = UNDER_WAY) -> None:
        """Hold back their packets."""
        self._note(connections, seconds)
        for family, some in ruleset.by_family(connections).items():
            self._make(family)
            self._run(ruleset.hold(family, some, seconds=seconds))

    def hold_afterwards(self, connections: Collection[Ends]) -> None:
        """Hold back what comes late for connections that are another node's now, without a gap."""
        self._note(connections, AFTERWARDS)
        for family, some in ruleset.by_family(connections).items():
            self._make(family)
            self._run(f"{ruleset.let_go(family, some)}\n{ruleset.hold(family, some, seconds=AFTERWARDS)}")

    def let_go(self, connections: Collection[Ends]) -> None:
        """Let their packets through; what is not held costs nothing."""
        now = time.monotonic()
        held = [each for each in connections if self._until.pop(each, 0.0) > now]
        for family, some in ruleset.by_family(held).items():
            if family in self._made:
                self._run(ruleset.let_go(family, some))

    def close(self) -> None:
        """Let everything through: the kernel removes the tables."""
        self._made.clear()
        self._until.clear()
        self._disconnect()

    def _note(self, connections: Collection[Ends], seconds: int) -> None:
        """Remember until when the kernel holds them, and forget those that it has let through."""
        now = time.monotonic()
        self._until = {each: until for each, until in self._until.items() if until > now}
        self._until.update(dict.fromkeys(connections, now + seconds + _LATER))

    def _make(self, family: Family) -> None:
        if family not in self._made:
            self._run(ruleset.make(family))
            self._made.add(family)

    def _run(self, script: str) -> None:
        nftables = self._open()
        try:
            nftables.run(script)
        except NftablesError:
            with contextlib.suppress(NftablesError):
                self.close()  # the next hold begins with new tables
            raise
