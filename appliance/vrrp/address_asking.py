"""Asks, while virtual routers are active, who else answers: for their addresses, and their peers for theirs.

VRRP cannot see every split brain: unicast routers that do not name each other, other router ids and hosts
without VRRP never hear one another. ARP and neighbour discovery see them all. It asks for one address after
the other, at a calm rate, by packets that claim nothing and change nobody's cache.
"""

import contextlib
import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from appliance.net.interfaces.frames import FrameSocket
from appliance.net.loop.closer import Closer
from appliance.net.loop.loop import Loop
from appliance.wire import arp, neighbour
from appliance.wire.arp import ArpError
from appliance.wire.neighbour import NeighbourError

SETTLED: Final = 2.0
"""Seconds after becoming active until the first question: who was active before may leave it meanwhile."""

PAUSE: Final = 5.0
"""Seconds between two questions for the same address, at least."""

GAP: Final = 0.1
"""Seconds between questions, of which there are a few at a time: with many addresses a round takes longer."""

AT_ONCE: Final = 16
"""Questions at a time."""

_MOST: Final = 1024  # addresses of one interface: the kernel takes programs of 4096 instructions

Answered = Callable[[bytes, str], None]
"""Is told the hardware address of who claims an address, and the address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where to ask: an interface as it is now, and the address that questions of IPv6 come from."""

    interface: str
    index: int
    mac: bytes
    source: str


class AddressAsking:
    """In the loop. `begin` for each address that is held, `end` when it is not any more."""

    def __init__(self, loop: Loop, closer: Closer) -> None:
        self._loop = loop
        self._closer = closer
        self._segments: dict[tuple[Place, bool], _Segment] = {}
        self._of: dict[str, tuple[Place, bool]] = {}
        self._next: dict[str, float] = {}
        self._pauses: dict[str, float] = {}
        self._due: list[tuple[float, str]] = []
        self._asked = float("-inf")

    @property
    def deadline(self) -> float | None:
        """Return when the next question is due."""
        while self._due and self._next.get(self._due[0][1]) != self._due[0][0]:
            heapq.heappop(self._due)
        return max(self._due[0][0], self._asked + GAP) if self._due else None

    @property
    def round(self) -> float:
        """Return how long it takes to ask for all of them."""
        return GAP * len(self._of) / AT_ONCE

    @property
    def interval(self) -> float:
        """Return how often an address is asked for where nothing else is said."""
        return max(PAUSE, self.round)

    def begin(
        self, address: str, place: Place, on_answer: Answered, now: float, *, pause: float = PAUSE
    ) -> None:
        """Ask for a literal address from now on, or go on from another place."""
        key = (place, ":" in address)
        if self._of.get(address) == key and self._segments[key].wanted[address] == on_answer:
            return
        self._leave(address)
        segment = self._segments.get(key)
        if segment is None:
            segment = self._segments[key] = _Segment(place, self._loop, self._closer)
        segment.wanted[address] = on_answer
        segment.stale = True
        self._pauses[address] = pause
        if address not in self._of:
            self._plan(address, now + SETTLED)
        self._of[address] = key

    def end(self, address: str, on_answer: Answered) -> None:
        """Ask for it no more, unless somebody else has it asked for by now; harmless when repeated."""
        key = self._of.get(address)
        if key is not None and self._segments[key].wanted[address] == on_answer:
            self._leave(address)
            del self._of[address], self._next[address], self._pauses[address]

    def tick(self, now: float) -> None:
        """Ask for some addresses that are due."""
        at = self.deadline
        if at is None or at > now:
            return
        self._asked = now
        for _ in range(AT_ONCE):
            address = self._pop(now)
            if address is None:
                return
            self._plan(address, now + self._pauses[address])
            with contextlib.suppress(OSError):  # the interface is down or has no room: asked again later
                self._segments[self._of[address]].ask(address)

    def _pop(self, now: float) -> str | None:
        """Return one that is due, and has not been planned anew or ended since it was."""
        while self._due and self._due[0][0] <= now:
            at, address = heapq.heappop(self._due)
            if self._next.get(address) == at:
                return address
        return None

    def _plan(self, address: str, at: float) -> None:
        self._next[address] = at
        heapq.heappush(self._due, (at, address))

    def close(self) -> None:
        """Ask for nothing any more."""
        for segment in self._segments.values():
            segment.close()
        self._segments.clear()
        self._of.clear()
        self._next.clear()
        self._pauses.clear()

    def _leave(self, address: str) -> None:
        key = self._of.get(address)
        if key is None:
            return
        segment = self._segments[key]
        del segment.wanted[address]
        segment.stale = True
        if not segment.wanted:
            segment.close()
            del self._segments[key]


class _Segment:
    """One socket for all questions of a family on one interface."""

    def __init__(self, place: Place, loop: Loop, closer: Closer) -> None:
        self.wanted: dict[str, Answered] = {}
        self.stale = True
        self._place = place
        self._loop = loop
        self._closer = closer
        self._socket: FrameSocket | None = None

    def ask(self, address: str) -> None:
        """Send one question; raises OSError."""
        self._open().send(self._question(address))

    def close(self) -> None:
        """Hear nothing any more."""
        if self._socket is not None:
            self._loop.forget(self._socket.fileno())
            self._closer.close(self._socket)
            self._socket = None

    def _question(self, address: str) -> bytes:
        if ":" in address:
            return neighbour.solicitation(self._place.mac, self._place.source, address)
        return arp.probe(self._place.mac, address)

    def _open(self) -> FrameSocket:
        """Return the socket, which hears of all addresses that are wanted by now."""
        if self._socket is None or self.stale:
            heard = list(self.wanted)[:_MOST]
            if self._socket is None:
                self._socket = FrameSocket.claims(self._place.interface, heard)
                self._loop.read(self._socket.fileno(), self._read)
            else:
                self._socket.claim(heard)
            self.stale = False
        return self._socket

    def _read(self) -> None:
        if self._socket is None:
            return
        with contextlib.suppress(OSError):
            for frame in self._socket.receive():
                with contextlib.suppress(ArpError, NeighbourError):
                    _tell(self.wanted, *claim(frame))


def claim(frame: bytes) -> tuple[bytes, str]:
    """Return who claims which address by a frame of ARP or neighbour discovery; raises their errors."""
    if frame[12:14] == arp.ETHERTYPE.to_bytes(2, "big"):
        said = arp.decode(frame)
        return said.sender_mac, said.sender
    found = neighbour.decode(frame)
    return found.sender_mac, found.target


def _tell(wanted: Mapping[str, Answered], mac: bytes, address: str) -> None:
    on_answer = wanted.get(address)
    if on_answer is not None:
        on_answer(mac, address)
