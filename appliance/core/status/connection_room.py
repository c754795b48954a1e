"""How much room the kernel's table of connections has (conntrack): once it is full, new ones are dropped."""

from dataclasses import dataclass
from typing import Final

_SHORT: Final = 0.8
_ENOUGH: Final = 0.7
"""Below that it is enough again: a table at the edge is one event."""

ADVICE: Final = "raise `net.netfilter.nf_conntrack_max` (sysctl.d); `ss -s` shows what uses it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRoom:
    """`used` of `limit` connections (nf_conntrack-sysctl: `_count`, `_max`); a limit of 0 is none."""

    used: int
    limit: int

    def short(self, *, before: bool = False) -> bool:
        """Return whether there is little left; `before` is whether there was."""
        return 0 < self.limit * (_ENOUGH if before else _SHORT) <= self.used

    def __str__(self) -> str:
        places = f"{self.used} of {self.limit}"
        return f"the kernel tracks {places} connections (conntrack): beyond that it drops new ones"
