"""Asks, before a virtual router becomes active for the first time, whether another machine has its addresses.

It sends the probes of RFC 5227 section 2.1.1 (ARP) and RFC 4862 section 5.4.2 (neighbour discovery), which
claim nothing. It ends as soon as this router or a peer is active: from then on answers for the addresses are
right.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Final

from appliance.core.vrrp.advert_rules import bare
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.loop.closer import Closer
from appliance.net.loop.loop import Loop
from appliance.net.packets.frames import FrameSocket
from appliance.vrrp.addresses.neighbour_queries import claim
from appliance.wire.ethernet import arp, neighbour_discovery
from appliance.wire.ethernet.arp import ArpError
from appliance.wire.ethernet.neighbour_discovery import NeighbourError

_PROBES: Final = 3  # RFC 5227 section 1.1, PROBE_NUM
_SHORTEST: Final = 0.01  # minimum seconds between two probes
_FIRST_ADVERT: Final = 1.25  # intervals within which an active router's advert arrives

Answered = Callable[[bytes, str, float], None]
"""Called with the hardware address of the machine that answered, the address asked for, and the time."""

OpenClaims = Callable[[str, Sequence[str]], FrameSocket]
"""Opens a socket on an interface for claims of these addresses, like `FrameSocket.claims`; raises OSError."""


class ClaimProbe:
    """Probes the addresses of one virtual router on its interface; raises OSError."""

    def __init__(
        self,
        router: VirtualRouter,
        *,
        loop: Loop,
        closer: Closer,
        mac: bytes,
        now: float,
        on_answer: Answered,
        open_claims: OpenClaims = FrameSocket.claims,
    ) -> None:
        # If a router is active, its advert arrives before the first probe, and no probe is needed.
        first = min(_FIRST_ADVERT * router.advert, router.listen / 2)
        self.interval = max((router.listen - first) / _PROBES, _SHORTEST)
        self.deadline: float | None = now + first
        self._loop = loop
        self._closer = closer
        self._mac = mac
        self._on_answer = on_answer
        self._addresses = frozenset(bare(router.here))
        probe = arp.probe if router.family == 4 else neighbour_discovery.probe
        self._probes = tuple(probe(mac, each) for each in bare(router.here))
        self._socket = open_claims(router.interface, bare(router.here))
        loop.read(self._socket.fileno(), self._read)

    def tick(self, now: float) -> None:
        """Send a probe for each address, and schedule the next ones."""
        self.deadline = now + self.interval
        for probe in self._probes:
            with contextlib.suppress(OSError):  # the interface is down, which netlink also reports
                self._socket.send(probe)

    def close(self) -> None:
        """Stop probing; harmless when repeated."""
        if self.deadline is not None:
            self.deadline = None
            self._loop.forget(self._socket.fileno())
            self._closer.close(self._socket)

    def _read(self) -> None:
        now = time.monotonic()
        with contextlib.suppress(OSError):
            for frame in self._socket.receive():
                with contextlib.suppress(ArpError, NeighbourError):
                    self._answer(*claim(frame), now)

    def _answer(self, mac: bytes, address: str, now: float) -> None:
        # Some hubs and wireless access points send a host its own probes back (RFC 5227 section 2.1.1).
        if address in self._addresses and mac != self._mac:
            self._on_answer(mac, address, now)
