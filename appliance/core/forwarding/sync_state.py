"""When a node has the connections of the others: it requests all of them once it receives from another node.

There is no word for "that was all". So the node has them when no new ones have come for a while, or after a
bound. Most of what happens meanwhile comes as a change, which is not counted among the new ones.

A node that receives nothing for a while is alone, and asks at the first sign of another one: what happened
meanwhile it has missed.

A node that has virtual IPs asks nobody, as its own table is right. It sends all when it has taken them, and
repeatedly: entries of other nodes see no packets, and would expire. It also sends all when it gives them to a
node that was silent for a while: both may have had them, and this one has what is new.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from appliance.wire.conntrackd.conntrackd_control import ConntrackdQuestion, ConntrackdStatistics

QUIET: Final = 1.0
"""Seconds without a new connection after which a node has all of them."""

SILENT: Final = 5.0
"""Seconds after which a node that receives nothing is alone: conntrackd sends something every second."""

MISSED: Final = 2.0
"""Seconds of silence in which another node has missed something."""

LONGEST: Final = 15.0
"""Seconds after which a node continues with what it has."""

TOLD_AGAIN: Final = 1800.0
"""Most seconds after which a node that has virtual IPs sends all connections again."""


class SyncPhase(StrEnum):
    """LISTENING: no other node was heard yet. RECEIVING: the others' connections come. SYNCED: they are here.

    ALONE: nothing is received from another node. UNSYNCED: conntrackd does not run.
    """

    LISTENING = "listening"
    RECEIVING = "receiving"
    SYNCED = "synced"
    ALONE = "alone"
    UNSYNCED = "unsynced"


@dataclass(slots=True, kw_only=True)
class SyncState:
    """The state at `now`, monotonic seconds. `ready`: this node may take addresses from living nodes.

    It stays ready when conntrackd dies: what is in the kernel's table is still there.
    """

    phase: SyncPhase = SyncPhase.UNSYNCED
    since: float = 0.0
    ready: bool = False
    _pid: int = 0
    _packets: int = 0
    _created: int = 0
    _heard_at: float = 0.0
    _grew_at: float = 0.0
    _tell_at: float = 0.0
    _alone_at: float = float("-inf")

    def was_alone(self, now: float) -> bool:
        """Return whether the other nodes have missed something, which no node has sent them yet."""
        return now - self._alone_at < SILENT

    def lost(self, now: float) -> None:
        """Note that conntrackd does not run or does not answer."""
        self._pid = 0
        self._enter(SyncPhase.UNSYNCED, now)

    def adopt(self, pid: int, counted: ConntrackdStatistics, now: float) -> None:
        """Note a conntrackd that an earlier run of the program had started: it has asked long ago."""
        self._begin(pid, counted, now)
        self._enter(SyncPhase.SYNCED, now)
        self.ready = True

    def look(
        self, pid: int, counted: ConntrackdStatistics, now: float, *, holds: bool, expires: float
    ) -> ConntrackdQuestion | None:
        """Return the command for conntrackd, whose statistics these are, None for none.

        `holds` is whether this node has virtual IPs, `expires` the seconds after which entries expire.
        """
        if pid != self._pid:
            self._begin(pid, counted, now)
            self._enter(SyncPhase.SYNCED if holds else SyncPhase.LISTENING, now)
        heard, grew = counted.packets > self._packets, counted.created > self._created
        self._packets, self._created = counted.packets, counted.created
        if heard:
            self._heard_at = now
        if grew:
            self._grew_at = now
        if now - self._heard_at >= MISSED:
            self._alone_at = now
        return self._holding(now, heard=heard, expires=expires) if holds else self._waiting(now, heard=heard)

    def _holding(self, now: float, *, heard: bool, expires: float) -> ConntrackdQuestion | None:
        self.ready = True
        silent = now - self._heard_at >= SILENT
        if silent or heard or self.phase is SyncPhase.RECEIVING:
            self._enter(SyncPhase.ALONE if silent else SyncPhase.SYNCED, now)
        if now < self._tell_at:
            return None
        self._tell_at = now + min(TOLD_AGAIN, expires / 3)
        return ConntrackdQuestion.SEND_ALL

    def _waiting(self, now: float, *, heard: bool) -> ConntrackdQuestion | None:
        match self.phase:
            case SyncPhase.LISTENING | SyncPhase.ALONE if heard:
                self._grew_at = now
                self._enter(SyncPhase.RECEIVING, now)
                return ConntrackdQuestion.REQUEST_ALL
            case SyncPhase.RECEIVING if now - self._grew_at >= QUIET or now - self.since >= LONGEST:
                self._enter(SyncPhase.SYNCED, now)
                self.ready = True
            case SyncPhase.LISTENING | SyncPhase.SYNCED if now - self._heard_at >= SILENT:
                self._enter(SyncPhase.ALONE, now)
                self.ready = True
            case _:
                pass
        return None

    def _begin(self, pid: int, counted: ConntrackdStatistics, now: float) -> None:
        self._pid, self._packets, self._created = pid, counted.packets, counted.created
        self._heard_at = self._grew_at = self._tell_at = now

    def _enter(self, phase: SyncPhase, now: float) -> None:
        if phase is not self.phase:
            self.phase, self.since = phase, now
