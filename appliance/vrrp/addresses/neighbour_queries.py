"""Asks by ARP and neighbour discovery, while virtual routers are active, which machines have an address.

It asks for the virtual addresses, which no other machine should have, and for the peers' own addresses, to
notice that a peer is reachable again (`peer_returns`). VRRP cannot detect every split brain: unicast routers
that do not name each other, routers with different ids and hosts without VRRP never receive each other's
adverts. ARP and neighbour discovery reach them all.

A virtual address is asked for with an ARP probe, which has no sender address and so changes no neighbour's
cache. A peer's own address is asked for with an ARP request: a starting peer that looks for duplicates takes
a probe for another machine that wants this address, and then does not use the address (RFC 5227 section
2.1.1).
"""

import contextlib
import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from appliance.net.loop.closer import Closer
from appliance.net.loop.loop import Loop
from appliance.net.packets.frames import FrameSocket
from appliance.wire.ethernet import arp, neighbour_discovery
from appliance.wire.ethernet.arp import ArpError
from appliance.wire.ethernet.neighbour_discovery import NeighbourError

SETTLED: Final = 2.0
"""Seconds from becoming active to the first question, while the previous active removes its addresses."""

PAUSE: Final = 5.0
"""Minimum seconds between two questions for the same address."""

GAP: Final = 0.1
"""Seconds between two batches of questions: many addresses take several batches."""

AT_ONCE: Final = 16
"""Questions in one batch: a thousand addresses must not keep the loop from sending adverts."""

# BPF_MAXINSNS: the kernel takes filters of up to 4096 instructions, and an address needs up to four.
_MOST: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class AskedAddress:
    """A literal address and the index of its interface: a link-local address may exist on many links."""

    index: int
    address: str


Answered = Callable[[bytes, AskedAddress, float], None]
"""Called with the hardware address of the machine that claims an address, the address, and the time."""


class ArpQuestion(Enum):
    """PROBE (RFC 5227): from 0.0.0.0, for our own addresses. REQUEST: from our source, for a peer's."""

    PROBE = "probe"
    REQUEST = "request"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskingInterface:
    """The interface to ask on as it is now; `source` is the sender address of requests."""

    interface: str
    index: int
    mac: bytes
    source: str


_SegmentKey = tuple[AskingInterface, bool]
"""An interface, and whether its questions are for IPv6."""


class NeighbourQueries:
    """The questions of all virtual routers, woken by the loop; each is repeated from `begin` to `end`."""

    def __init__(self, loop: Loop, closer: Closer) -> None:
        self._loop = loop
        self._closer = closer
        self._segments: dict[_SegmentKey, _Segment] = {}
        self._segment_of: dict[AskedAddress, _SegmentKey] = {}
        self._next: dict[AskedAddress, float] = {}
        self._pauses: dict[AskedAddress, float] = {}
        self._due: list[tuple[float, AskedAddress]] = []
        self._last_batch = float("-inf")

    @property
    def deadline(self) -> float | None:
        """Return when the next question is due."""
        while self._due and self._next.get(self._due[0][1]) != self._due[0][0]:
            heapq.heappop(self._due)
        return max(self._due[0][0], self._last_batch + GAP) if self._due else None

    @property
    def round(self) -> float:
        """Return how many seconds one round of questions takes."""
        return GAP * len(self._segment_of) / AT_ONCE

    @property
    def interval(self) -> float:
        """Return the seconds between two questions for one address, unless `begin` set another pause."""
        return max(PAUSE, self.round)

    def begin(
        self,
        address: str,
        via: AskingInterface,
        on_answer: Answered,
        now: float,
        *,
        pause: float = PAUSE,
        form: ArpQuestion = ArpQuestion.PROBE,
    ) -> AskedAddress:
        """Ask for a literal address from now on, every `pause` seconds at most; return what `end` takes.

        If called again with another interface or callback, continue with those.
        """
        asked = AskedAddress(index=via.index, address=address)
        key = (via, ":" in address)
        wanted = _WantedClaim(on_answer=on_answer, form=form)
        if self._segment_of.get(asked) == key and self._segments[key].wanted[address] == wanted:
            return asked
        self._drop(asked)
        segment = self._segments.get(key)
        if segment is None:
            segment = self._segments[key] = _Segment(via, self._loop, self._closer)
        segment.wanted[address] = wanted
        segment.stale = True
        self._pauses[asked] = pause
        if asked not in self._segment_of:
            self._plan(asked, now + SETTLED)
        self._segment_of[asked] = key
        return asked

    def end(self, asked: AskedAddress, on_answer: Answered) -> None:
        """Stop asking, unless another caller has since begun with another `on_answer`."""
        key = self._segment_of.get(asked)
        if key is not None and self._segments[key].wanted[asked.address].on_answer == on_answer:
            self._drop(asked)
            del self._segment_of[asked], self._next[asked], self._pauses[asked]

    def tick(self, now: float) -> None:
        """Ask for the addresses that are due, one batch at most."""
        at = self.deadline
        if at is None or at > now:
            return
        self._last_batch = now
        for _ in range(AT_ONCE):
            asked = self._pop(now)
            if asked is None:
                return
            self._plan(asked, now + self._pauses[asked])
            with contextlib.suppress(OSError):  # the interface is down or its queue is full: retried later
                self._segments[self._segment_of[asked]].ask(asked.address)

    def _pop(self, now: float) -> AskedAddress | None:
        """Return an address that is due, skipping entries that were rescheduled or ended."""
        while self._due and self._due[0][0] <= now:
            at, asked = heapq.heappop(self._due)
            if self._next.get(asked) == at:
                return asked
        return None

    def _plan(self, asked: AskedAddress, at: float) -> None:
        self._next[asked] = at
        heapq.heappush(self._due, (at, asked))

    def close(self) -> None:
        """Close the sockets; no more questions are sent."""
        for segment in self._segments.values():
            segment.close()
        self._segments.clear()
        self._segment_of.clear()
        self._next.clear()
        self._pauses.clear()

    def _drop(self, asked: AskedAddress) -> None:
        key = self._segment_of.get(asked)
        if key is None:
            return
        segment = self._segments[key]
        del segment.wanted[asked.address]
        segment.stale = True
        if not segment.wanted:
            segment.close()
            del self._segments[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class _WantedClaim:
    """How one address is asked for, and the callback for the answers."""

    on_answer: Answered
    form: ArpQuestion


class _Segment:
    """The socket for all questions of one address family on one interface, opened by the first question."""

    def __init__(self, via: AskingInterface, loop: Loop, closer: Closer) -> None:
        self.wanted: dict[str, _WantedClaim] = {}
        self.stale = True
        self._via = via
        self._loop = loop
        self._closer = closer
        self._socket: FrameSocket | None = None

    def ask(self, address: str) -> None:
        """Send one question; raises OSError."""
        self._open().send(self._question(address))

    def close(self) -> None:
        """Close the socket; the next question opens a new one."""
        if self._socket is not None:
            self._loop.forget(self._socket.fileno())
            self._closer.close(self._socket)
            self._socket = None

    def _question(self, address: str) -> bytes:
        # Neighbour discovery needs no such distinction: a solicitation with a source claims only that source
        # (RFC 4861 section 7.2.2).
        if ":" in address:
            return neighbour_discovery.solicitation(self._via.mac, self._via.source, address)
        if self.wanted[address].form is ArpQuestion.REQUEST:
            return arp.request(self._via.mac, self._via.source, address)
        return arp.probe(self._via.mac, address)

    def _open(self) -> FrameSocket:
        """Return the socket, with a filter that admits the claims of all wanted addresses."""
        if self._socket is None or self.stale:
            addresses = list(self.wanted)[:_MOST]
            if self._socket is None:
                self._socket = FrameSocket.claims(self._via.interface, addresses)
                self._loop.read(self._socket.fileno(), self._read)
            else:
                self._socket.claim(addresses)
            self.stale = False
        return self._socket

    def _read(self) -> None:
        if self._socket is None:
            return
        now = time.monotonic()
        with contextlib.suppress(OSError):
            for frame in self._socket.receive():
                with contextlib.suppress(ArpError, NeighbourError):
                    self._answer(*claim(frame), now)

    def _answer(self, mac: bytes, address: str, now: float) -> None:
        wanted = self.wanted.get(address)
        if wanted is not None:
            wanted.on_answer(mac, AskedAddress(index=self._via.index, address=address), now)


def claim(frame: bytes) -> tuple[bytes, str]:
    """Return the hardware address and the IP address that a frame binds together.

    They belong to the sender of an ARP packet (RFC 826), or of the target of a neighbour advertisement (RFC
    4861 section 4.4). Raises ArpError or NeighbourError.
    """
    if frame[12:14] == arp.ETHERTYPE.to_bytes(2, "big"):
        packet = arp.decode(frame)
        return packet.sender_mac, packet.sender
    advertisement = neighbour_discovery.decode(frame)
    return advertisement.sender_mac, advertisement.target
