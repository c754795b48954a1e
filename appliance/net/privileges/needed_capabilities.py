"""Which of the kernel's privileges this process has (capabilities(7))."""

from enum import IntEnum
from pathlib import Path
from typing import Final

_STATUS: Final = Path("/proc/thread-self/status")


class Capability(IntEnum):
    """Capabilities that we use, by their numbers of linux/capability.h."""

    CAP_CHOWN = 0
    CAP_DAC_READ_SEARCH = 2
    CAP_SETGID = 6
    CAP_SETUID = 7
    CAP_SETPCAP = 8
    CAP_NET_BIND_SERVICE = 10
    CAP_NET_ADMIN = 12
    CAP_NET_RAW = 13
    CAP_IPC_LOCK = 14
    CAP_SYS_NICE = 23
    CAP_SYS_RESOURCE = 24


NEEDED: Final = (Capability.CAP_NET_ADMIN, Capability.CAP_NET_RAW)
"""Without these there are no virtual addresses: they change interfaces and open raw sockets."""


def has(capability: Capability) -> bool:
    """Return whether a capability is in effect for the thread that calls: capabilities belong to threads."""
    return bool(_effective() >> capability & 1)


def missing() -> tuple[str, ...]:
    """Return the names of the needed capabilities that are not in effect."""
    effective = _effective()
    return tuple(capability.name for capability in NEEDED if not effective >> capability & 1)


def _effective() -> int:
    lines = _STATUS.read_text().splitlines()
    return next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
