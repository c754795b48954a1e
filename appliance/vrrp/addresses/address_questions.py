"""Asks, while virtual routers are active, who else answers: for their addresses, and their peers for theirs.

VRRP cannot see every split brain: unicast routers that do not name each other, other router ids and hosts
without VRRP never hear one another. ARP and neighbour discovery see them all. It asks for one address after
the other, at a calm rate. By ARP a virtual address is asked for with a probe, which claims nothing. The own
address of a peer is not: a peer that looks for duplicates while it starts takes a probe for another machine
that wants this address, and does not use it (RFC 5227 section 2.1.1).
"""

import contextlib
import heapq
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
"""Seconds after becoming active until the first question: who was active before may leave it meanwhile."""

PAUSE: Final = 5.0
"""Seconds between two questions for the same address, at least."""

GAP: Final = 0.1
"""Seconds between questions, of which there are a few at a time: with many addresses a round takes longer."""

AT_ONCE: Final = 16
"""Questions at a time."""

_MOST: Final = 1024  # addresses of one interface: the kernel takes programs of 4096 instructions


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class AskedAddress:
    """A literal address on the interface of this index: link-local ones are the same on many."""

    index: int
    address: str


Answered = Callable[[bytes, AskedAddress], None]
"""Is told the hardware address of who claims an address, and which."""


class ArpQuestion(Enum):
    """How ARP asks: PROBE from nobody, for what we have ourselves; REQUEST from our source, for a peer's."""

    PROBE = "probe"
    REQUEST = "request"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskingInterface:
    """Where to ask: an interface as it is now, and the address that questions come from."""

    interface: str
    index: int
    mac: bytes
    source: str


class AddressQuestions:
    """In the loop. `begin` for each address that is held, `end` when it is not any more."""

    def __init__(self, loop: Loop, closer: Closer) -> None:
        self._loop = loop
        self._closer = closer
        self._segments: dict[tuple[AskingInterface, bool], _Segment] = {}
        self._of: dict[AskedAddress, tuple[AskingInterface, bool]] = {}
        self._next: dict[AskedAddress, float] = {}
        self._pauses: dict[AskedAddress, float] = {}
        self._due: list[tuple[float, AskedAddress]] = []
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
        self,
        address: str,
        place: AskingInterface,
        on_answer: Answered,
        now: float,
        *,
        pause: float = PAUSE,
        form: ArpQuestion = ArpQuestion.PROBE,
    ) -> AskedAddress:
        """Ask for a literal address from now on, or go on from another place; return what `end` takes."""
        asked, key = AskedAddress(index=place.index, address=address), (place, ":" in address)
        wanted = _Question(on_answer=on_answer, form=form)
        if self._of.get(asked) == key and self._segments[key].wanted[address] == wanted:
            return asked
        self._leave(asked)
        segment = self._segments.get(key)
        if segment is None:
            segment = self._segments[key] = _Segment(place, self._loop, self._closer)
        segment.wanted[address] = wanted
        segment.stale = True
        self._pauses[asked] = pause
        if asked not in self._of:
            self._plan(asked, now + SETTLED)
        self._of[asked] = key
        return asked

    def end(self, asked: AskedAddress, on_answer: Answered) -> None:
        """Ask for it no more, unless somebody else has it asked for by now; harmless when repeated."""
        key = self._of.get(asked)
        if key is not None and self._segments[key].wanted[asked.address].on_answer == on_answer:
            self._leave(asked)
            del self._of[asked], self._next[asked], self._pauses[asked]

    def tick(self, now: float) -> None:
        """Ask for some addresses that are due."""
        at = self.deadline
        if at is None or at > now:
            return
        self._asked = now
        for _ in range(AT_ONCE):
            asked = self._pop(now)
            if asked is None:
                return
            self._plan(asked, now + self._pauses[asked])
            with contextlib.suppress(OSError):  # the interface is down or has no room: asked again later
                self._segments[self._of[asked]].ask(asked.address)

    def _pop(self, now: float) -> AskedAddress | None:
        """Return one that is due, and has not been planned anew or ended since it was."""
        while self._due and self._due[0][0] <= now:
            at, asked = heapq.heappop(self._due)
            if self._next.get(asked) == at:
                return asked
        return None

    def _plan(self, asked: AskedAddress, at: float) -> None:
        self._next[asked] = at
        heapq.heappush(self._due, (at, asked))

    def close(self) -> None:
        """Ask for nothing any more."""
        for segment in self._segments.values():
            segment.close()
        self._segments.clear()
        self._of.clear()
        self._next.clear()
        self._pauses.clear()

    def _leave(self, asked: AskedAddress) -> None:
        key = self._of.get(asked)
        if key is None:
            return
        segment = self._segments[key]
        del segment.wanted[asked.address]
        segment.stale = True
        if not segment.wanted:
            segment.close()
            del self._segments[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """How one address is asked for, and who is told."""

    on_answer: Answered
    form: ArpQuestion


class _Segment:
    """One socket for all questions of a family on one interface."""

    def __init__(self, place: AskingInterface, loop: Loop, closer: Closer) -> None:
        self.wanted: dict[str, _Question] = {}
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
            return neighbour_discovery.solicitation(self._place.mac, self._place.source, address)
        if self.wanted[address].form is ArpQuestion.REQUEST:
            return arp.request(self._place.mac, self._place.source, address)
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
                    self._tell(*claim(frame))

    def _tell(self, mac: bytes, address: str) -> None:
        wanted = self.wanted.get(address)
        if wanted is not None:
            wanted.on_answer(mac, AskedAddress(index=self._place.index, address=address))


def claim(frame: bytes) -> tuple[bytes, str]:
    """Return who claims which address by a frame of ARP or neighbour discovery; raises their errors."""
    if frame[12:14] == arp.ETHERTYPE.to_bytes(2, "big"):
        said = arp.decode(frame)
        return said.sender_mac, said.sender
    found = neighbour_discovery.decode(frame)
    return found.sender_mac, found.target
