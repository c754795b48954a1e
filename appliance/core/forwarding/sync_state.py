"""When a node has the connections of the others: it requests all of them once it receives from another node.

There is no word for "that was all". So the node has them when no new ones have come for a while, or after a
bound. Most of what happens meanwhile comes as a change, which is not counted among the new ones.

A node that receives nothing for a while has missed what happened meanwhile, and requests all at the next sign
of another node. That is also so for a node that has virtual IPs: another one may have had them too. No other
node with virtual IPs requests anything, as its own table is right: what ended here, and is still established
in another table, would be established here again.

A node that has virtual IPs sends all when it has taken them, and repeatedly: entries of other nodes see no
packets, and would expire. For a while after it gave them away it answers requests, and makes none.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Final

from appliance.wire.conntrackd.conntrackd_control import ConntrackdQuestion, ConntrackdStatistics

QUIET: Final = 1.0
"""Seconds without a new connection after which a node has all of them."""

SILENT: Final = 5.0
"""Seconds after which a node that receives nothing is alone: conntrackd sends something every second."""

MISSED: Final = 2.0
"""Seconds without a packet in which a node has missed something."""

LONGEST: Final = 15.0
"""Seconds after which a node continues with what it has."""

ANSWERS_FOR: Final = 5.0
"""Seconds for which a node that gave its virtual IPs away answers requests."""

SENT_AGAIN: Final = 1800.0
"""Most seconds after which a node that has virtual IPs sends all connections again."""


class SyncRole(Enum):
    """HOLDS: the node has virtual IPs. ANSWERS: it gave them away just now. WAITS: another node has them."""

    HOLDS = auto()
    ANSWERS = auto()
    WAITS = auto()


class SyncPhase(StrEnum):
    """LISTENING: nothing was received yet. RECEIVING: the others' connections come. SYNCED: they are here.

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
    _received_at: float = 0.0
    _grew_at: float = 0.0
    _send_at: float = 0.0
    _missed: bool = True

    def lost(self, now: float) -> None:
        """Note that conntrackd does not run or does not answer."""
        self._pid = 0
        self._enter(SyncPhase.UNSYNCED, now)

    def adopt(self, pid: int, counted: ConntrackdStatistics, now: float) -> None:
        """Note a conntrackd that an earlier run of the program had started: it has asked long ago."""
        self._begin(pid, counted, now)
        self._enter(SyncPhase.SYNCED, now)
        self._missed = False
        self.ready = True

    def look(
        self, pid: int, counted: ConntrackdStatistics, now: float, *, role: SyncRole, expires: float
    ) -> ConntrackdQuestion | None:
        """Return the command for conntrackd, whose statistics these are, None for none.

        `expires` are the seconds after which entries expire.
        """
        waits = role is SyncRole.WAITS
        if pid != self._pid:
            self._begin(pid, counted, now)
            self._missed |= waits
            self._enter(SyncPhase.LISTENING if waits else SyncPhase.SYNCED, now)
        received, grew = counted.packets > self._packets, counted.created > self._created
        self._packets, self._created = counted.packets, counted.created
        if received:
            self._received_at = now
        if grew:
            self._grew_at = now
        silence = now - self._received_at
        self._missed |= silence >= MISSED
        if waits:
            self._wait(now, silence)
        else:
            self.ready = True
            if received or silence >= SILENT or self.phase is SyncPhase.RECEIVING:
                self._enter(SyncPhase.ALONE if silence >= SILENT else SyncPhase.SYNCED, now)
        if received and self._missed and role is not SyncRole.ANSWERS:
            return self._request(now, waits=waits)
        if role is SyncRole.HOLDS and now >= self._send_at:
            self._send_at = now + min(SENT_AGAIN, expires / 3)
            return ConntrackdQuestion.SEND_ALL
        return None

    def _wait(self, now: float, silence: float) -> None:
        match self.phase:
            case SyncPhase.RECEIVING if now - self._grew_at >= QUIET or now - self.since >= LONGEST:
                self._enter(SyncPhase.SYNCED, now)
                self.ready = True
            case SyncPhase.LISTENING | SyncPhase.SYNCED if silence >= SILENT:
                self._enter(SyncPhase.ALONE, now)
                self.ready = True
            case _:
                pass

    def _request(self, now: float, *, waits: bool) -> ConntrackdQuestion:
        self._missed = False
        if waits:
            self._grew_at = now
            self._enter(SyncPhase.RECEIVING, now)
        return ConntrackdQuestion.REQUEST_ALL

    def _begin(self, pid: int, counted: ConntrackdStatistics, now: float) -> None:
        self._pid, self._packets, self._created = pid, counted.packets, counted.created
        self._received_at = self._grew_at = self._send_at = now

    def _enter(self, phase: SyncPhase, now: float) -> None:
        if phase is not self.phase:
            self.phase, self.since = phase, now
