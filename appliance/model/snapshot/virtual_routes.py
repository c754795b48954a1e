"""Routes and rules of the kernel's routing that come and go with the addresses of a virtual router."""

from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Final

MAIN_TABLE: Final = 254
"""The table of the kernel's own routes (RT_TABLE_MAIN of linux/rtnetlink.h)."""

OWN_METRICS: Final = {4: 0, 6: 1024}
"""The kernel's default metric, by version of IP: none, and IP6_RT_PRIO_USER."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualRoute:
    """One route (keepalived's virtual_routes).

    `to` is a network, `0.0.0.0/0` or `::/0` for the default route. `interface` None lets the kernel find the
    interface of `via`. `metric` None is the kernel's own: 0, 1024 for IPv6.
    """

    to: str
    via: str | None = None
    interface: str | None = None
    source: str | None = None
    table: int = MAIN_TABLE
    metric: int | None = None
    onlink: bool = False

    @property
    def place(self) -> tuple[str, int, int]:
        """Return network, table and metric: the kernel has one route for them."""
        own = OWN_METRICS[6 if ":" in self.to else 4]
        return self.to, self.table, own if self.metric is None else self.metric

    def on(self, interface: str) -> "VirtualRoute":
        """Return it as a virtual router on `interface` has it; a gateway that can be found needs none."""
        found = self.via is not None and not self.onlink and not ip_address(self.via).is_link_local
        return self if self.interface or found else replace(self, interface=interface)

    def __str__(self) -> str:
        """Return it as in messages."""
        table = None if self.table == MAIN_TABLE else self.table
        words = {"via": self.via, "dev": self.interface, "table": table, "metric": self.metric}
        return self.to + "".join(f" {key} {each}" for key, each in words.items() if each is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualRule:
    """Which packets, `source` to `to` (None: all), look up routes in `table` (keepalived's virtual_rules)."""

    source: str | None = None
    to: str | None = None
    table: int
    priority: int

    def __str__(self) -> str:
        """Return it as in messages."""
        to = f" to {self.to}" if self.to else ""
        return f"from {self.source or 'all'}{to} table {self.table} priority {self.priority}"
