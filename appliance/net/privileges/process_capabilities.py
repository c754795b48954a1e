"""The kernel's privileges of this process (capabilities(7))."""

from pathlib import Path
from typing import Final

from appliance.model.capability import Capability

_STATUS: Final = Path("/proc/thread-self/status")


NEEDED: Final = (Capability.CAP_NET_ADMIN, Capability.CAP_NET_RAW)
"""Required for virtual addresses: to change interfaces and open raw sockets."""


def has(capability: Capability) -> bool:
    """Return whether a capability is in effect for the calling thread: capabilities belong to threads."""
    return bool(_effective() >> capability & 1)


def missing() -> tuple[str, ...]:
    """Return the names of the needed capabilities that are not in effect."""
    effective = _effective()
    return tuple(capability.name for capability in NEEDED if not effective >> capability & 1)


def _effective() -> int:
    lines = _STATUS.read_text().splitlines()
    return next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
