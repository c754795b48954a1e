"""How much room the kernel's connection table (conntrack) has: if it is full, new connections are dropped."""

from dataclasses import dataclass
from typing import Final

_SHORT: Final = 0.8
_ENOUGH: Final = 0.7
"""Below that there is enough room again: a table at the edge is one event."""

ADVICE: Final = "raise `net.netfilter.nf_conntrack_max` (sysctl.d); `ss -s` shows what uses it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRoom:
    """`used` of `limit` connections (nf_conntrack-sysctl: `_count`, `_max`); a limit of 0 is no limit."""

    used: int
    limit: int

    def short(self, *, before: bool = False) -> bool:
        """Return whether little room is left; `before` is whether that was so before."""
        return 0 < self.limit * (_ENOUGH if before else _SHORT) <= self.used

    def __str__(self) -> str:
        places = f"{self.used} of {self.limit}"
        return f"the kernel tracks {places} connections (conntrack): beyond that it drops new ones"
