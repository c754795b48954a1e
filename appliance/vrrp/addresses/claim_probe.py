"""Asks, while a virtual router listens before its first claim, whether somebody else has its addresses.

By the probes of RFC 5227 and RFC 4862, which claim nothing. It ends as soon as there is an active, be it we
or a peer: its answers are as they should be.
"""

import contextlib
from collections.abc import Callable
from typing import Final

from appliance.core.vrrp.advert_rules import bare
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.loop.closer import Closer
from appliance.net.loop.loop import Loop
from appliance.net.packets.frames import FrameSocket
from appliance.vrrp.addresses.address_questions import claim
from appliance.wire.ethernet import arp, neighbour_discovery
from appliance.wire.ethernet.arp import ArpError
from appliance.wire.ethernet.neighbour_discovery import NeighbourError

_PROBES: Final = 3  # in the time of listening (RFC 5227 section 1.1, PROBE_NUM)
_SHORTEST: Final = 0.01
_PATIENCE: Final = 1.25  # intervals in which an active is heard

Answered = Callable[[bytes, str], None]
"""Is told the hardware address of who answered, and the address asked for."""


class ClaimProbe:
    """Probes the addresses of one virtual router on an interface; raises OSError."""

    def __init__(
        self,
        router: VirtualRouter,
        *,
        loop: Loop,
        closer: Closer,
        mac: bytes,
        now: float,
        on_answer: Answered,
    ) -> None:
        # An active that is there is heard before the first probe, and then there is none.
        first = min(_PATIENCE * router.advert, router.listen / 2)
        self.interval = max((router.listen - first) / _PROBES, _SHORTEST)
        self.deadline: float | None = now + first
        self._loop = loop
        self._closer = closer
        self._mac = mac
        self._on_answer = on_answer
        self._addresses = frozenset(bare(router.addresses))
        probe = arp.probe if router.family == 4 else neighbour_discovery.probe
        self._probes = tuple(probe(mac, each) for each in bare(router.addresses))
        self._socket = FrameSocket.claims(router.interface, bare(router.addresses))
        loop.read(self._socket.fileno(), self._read)

    def tick(self, now: float) -> None:
        """Ask again."""
        self.deadline = now + self.interval
        for probe in self._probes:
            with contextlib.suppress(OSError):  # the interface is down: netlink tells that
                self._socket.send(probe)

    def close(self) -> None:
        """Stop asking; harmless when repeated."""
        if self.deadline is not None:
            self.deadline = None
            self._loop.forget(self._socket.fileno())
            self._closer.close(self._socket)

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            for frame in self._socket.receive():
                with contextlib.suppress(ArpError, NeighbourError):
                    self._hear(*claim(frame))

    def _hear(self, mac: bytes, address: str) -> None:
        if address in self._addresses and mac != self._mac:
            self._on_answer(mac, address)
