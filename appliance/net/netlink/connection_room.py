"""The kernel's table of connections: how full it is, logged as it fills, and how long it keeps entries."""

import contextlib
from pathlib import Path
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.core.status.connection_room import ConnectionRoom
from appliance.wire.nftables.ended_connections import SYSCTLS

_FOLDER: Final = Path("/proc/sys/net/netfilter")
_LOOKED: Final = 1.0  # seconds between two checks


def connection_room(folder: Path = _FOLDER) -> ConnectionRoom | None:
    """Return the room in this network namespace; None if the kernel tracks no connections."""
    with contextlib.suppress(OSError, ValueError):
        used, limit = (int((folder / f"nf_conntrack_{each}").read_text()) for each in ("count", "max"))
        return ConnectionRoom(used=used, limit=limit)
    return None


def connection_times(folder: Path = _FOLDER) -> dict[str, int]:
    """Return how many seconds the kernel keeps an idle open connection, by state.

    Empty before the kernel tracks connections: nft's constants, which apply then, are the kernel's defaults.
    """
    found: dict[str, int] = {}
    for state, name in SYSCTLS.items():
        with contextlib.suppress(OSError, ValueError):
            found[state] = int((folder / f"nf_conntrack_tcp_timeout_{name}").read_text())
    return found


class RoomWatch:
    """Checks once a second."""

    def __init__(self, *, folder: Path = _FOLDER) -> None:
        self._folder = folder
        self._short = False
        self._due = float("-inf")

    def look(self, log: FilteringBoundLogger, now: float) -> None:
        """Log when room gets short and when it suffices again; `now` is monotonic seconds."""
        if now < self._due:
            return
        self._due = now + _LOOKED
        room, before = connection_room(self._folder), self._short
        self._short = room is not None and room.short(before=before)
        if room is not None and self._short and not before:
            log.warning("conntrack-fills", used=room.used, limit=room.limit)
        elif before and not self._short:
            log.info("conntrack-has-room")
