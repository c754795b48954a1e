"""IPVS's schedulers, and the algorithms that replace them in the kernel here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from appliance.model.snapshot.pools import Balance

_TURNS: Final = (
    "servers take turns: the kernel does not compare their connections (a proxy's `leastconn` does)"
)
_HASHED: Final = "a client's address chooses its server, with a hash other than IPVS's"
_ONE: Final = (
    "chooses by the address that clients connect to, of which there is one here: write `wrr`, or `sh` for "
    "the client's"
)
_ORDER: Final = "only backups wait for other servers here: `backup: true` on a server in the appliance's YAML"

USUAL: Final = "wlc"
"""keepalived's default scheduler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """One of our algorithms; with `alike` all servers have the same weight. `reason` names the difference."""

    balance: Balance = Balance.ROUNDROBIN
    alike: bool = False
    reason: str | None = None


SCHEDULERS: Final[Mapping[str, Scheduler]] = {
    "rr": Scheduler(alike=True),
    "wrr": Scheduler(),
    "lc": Scheduler(alike=True, reason=_TURNS),
    "wlc": Scheduler(reason=_TURNS),
    "sed": Scheduler(reason=_TURNS),
    "nq": Scheduler(reason=_TURNS),
    "twos": Scheduler(
        balance=Balance.RANDOM, reason="one is chosen at random: the kernel does not compare two"
    ),
    "sh": Scheduler(balance=Balance.SOURCE, reason=_HASHED),
    "mh": Scheduler(balance=Balance.SOURCE, reason=_HASHED),
}
UNKNOWN_HERE: Final[Mapping[str, str]] = {
    "dh": _ONE,
    "lblc": _ONE,
    "lblcr": _ONE,
    "fo": _ORDER,
    "ovf": _ORDER,
}
"""Schedulers without a similar algorithm here, and why."""
