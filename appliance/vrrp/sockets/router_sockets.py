"""The sockets of one virtual router, on one interface as it is now: opened and closed together."""

import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from appliance.core.vrrp.advert_rules import advertisement, bare
from appliance.model.snapshot.virtual_router import HmacMode, Notify, OnConflict, VirtualRouter
from appliance.net.files import hmac_keys
from appliance.net.loop.closer import Closer
from appliance.net.packets.frame_queue import FrameQueue
from appliance.net.packets.frames import FrameSocket
from appliance.net.packets.vrrp_sockets import VrrpSocket
from appliance.vrrp.addresses.address_interface import AddressInterface
from appliance.vrrp.sockets.advert_receiver import AdvertDeviation, AdvertReceiver, DroppedAdvert
from appliance.wire.ethernet import arp, neighbour_discovery
from appliance.wire.vrrp import advertisement as vrrp
from appliance.wire.vrrp import hmac_trailer
from appliance.wire.vrrp.advertisement import MULTICAST_4, MULTICAST_6

_NO_NOTIFY: Final = Notify(active=(), backup=(), fault=(), stop=(), any=(), user=None, timeout=0.0)
_NO_ROUTER: Final = 0  # no virtual router has this id, so a socket for sending receives nothing
_GROUPS: Final = {4: MULTICAST_4, 6: MULTICAST_6}


class AdvertSender:
    """Sends from `source` over `socket` to the group or the peers; `keys` are HMAC secrets by id."""

    def __init__(
        self, router: VirtualRouter, socket: VrrpSocket, *, source: str, keys: Mapping[int, bytes]
    ) -> None:
        self._router = router
        self._socket = socket
        self._source = source
        self._group = MULTICAST_4 if router.family == 4 else MULTICAST_6
        self._packets: dict[int, tuple[tuple[bytes, str], ...]] = {}
        hmac = router.hmac
        self._signs = hmac is not None and hmac.mode is not HmacMode.RECEIVE_ONLY
        self._sequence = hmac_trailer.Sequence(hmac_trailer.window(hmac) if hmac else None)
        self._keys = keys

    def send(self, priority: int) -> None:
        """Send one advertisement; raises the first OSError after all destinations have been tried."""
        failure: OSError | None = None
        for packet, destination in self._packets.get(priority) or self._built(priority):
            try:
                whole = self._signed(packet, destination) if self._signs else packet
                self._socket.send(whole, destination)
            except OSError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _built(self, priority: int) -> tuple[tuple[bytes, str], ...]:
        router, content = self._router, advertisement(self._router, priority)
        packets = tuple(
            (
                vrrp.encode(content, source=self._source, destination=destination, checksum=router.checksum),
                destination,
            )
            for destination in router.peers or (self._group,)
        )
        self._packets[priority] = packets
        return packets

    def _signed(self, packet: bytes, destination: str) -> bytes:
        hmac = self._router.hmac
        if hmac is None:
            return packet
        return hmac_trailer.sealed(
            packet,
            source=self._source,
            destination=destination,
            key_id=hmac.send,
            secret=self._keys[hmac.send],
            clock=self._sequence.next(time.time()),
        )


class RouterSockets:
    """Sends and receives for one virtual router, from the address `source`; raises OSError.

    `interface` carries the addresses. With a virtual MAC that is a macvlan, and adverts are sent from it (RFC
    9568 section 7.3). They are received on the router's own interface in any case.
    """

    def __init__(
        self,
        router: VirtualRouter,
        *,
        interface: AddressInterface,
        source: str,
        closer: Closer,
        on_drop: Callable[[DroppedAdvert, float], None],
        on_deviation: Callable[[AdvertDeviation, float], None],
    ) -> None:
        _require_own(source, index=socket.if_nametoindex(router.interface))
        keys = hmac_keys.secrets(router.hmac.keys if router.hmac else ())
        self.source = source
        self.basis = basis(router)
        self._closer = closer
        with ExitStack() as stack:
            self._receiving = stack.enter_context(
                VrrpSocket(
                    router.interface,
                    family=router.family,
                    source=source,
                    group=None if router.peers else _GROUPS[router.family],
                    router_id=router.router_id,
                )
            )
            sending = self._receiving
            # A socket is bound to one interface (SO_BINDTODEVICE): adverts leave by the macvlan, and those of
            # the peers are received on its parent.
            if router.virtual_mac:
                sending = VrrpSocket(
                    interface.name, family=router.family, source=source, group=None, router_id=_NO_ROUTER
                )
                stack.enter_context(sending)
            # A separate socket: gratuitous ARPs must leave from the MAC of the addresses, which an IP socket
            # cannot choose.
            self._frames = _FramesByInterface(interface.name, *interface.others)
            self.announcing = FrameQueue(self._frames)
            self._opened = stack.pop_all()
        self.send = AdvertSender(router, sending, source=source, keys=keys).send
        self.receive = AdvertReceiver(
            router, self._receiving, source=source, keys=keys, on_drop=on_drop, on_deviation=on_deviation
        ).receive
        self._announcements = tuple(
            frame for address in bare(router.here) for frame in _announcements(router, address, interface.mac)
        )
        for address, name in router.elsewhere:
            if name in interface.others:
                frames = _announcements(router, bare([address])[0], interface.others[name].mac)
                self._frames.leave_by(name, frames)
                self._announcements += frames

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when a packet has arrived."""
        return self._receiving.fileno()

    def announce(self, repeat: int, now: float) -> int:
        """Announce all addresses `repeat` times; return how many frames were sent immediately.

        The rest waits in `announcing` until the interface can take it. Raises OSError.
        """
        return self.announcing.put(self._announcements * repeat, now)

    def close(self) -> None:
        """Close all sockets.

        The packet socket is closed by the closer's thread: the kernel waits there for an RCU grace period,
        16 ms and more.
        """
        self._opened.close()
        for each in self._frames.sockets:
            self._closer.close(each)


class _FramesByInterface:
    """Sends each frame by its address's interface; raises OSError if one takes none."""

    def __init__(self, own: str, *others: str) -> None:
        with ExitStack() as stack:
            self._own = stack.enter_context(FrameSocket(own))
            self._others = {each: stack.enter_context(FrameSocket(each)) for each in others}
            stack.pop_all()
        self._ways: dict[bytes, FrameSocket] = {}

    @property
    def sockets(self) -> tuple[FrameSocket, ...]:
        return (self._own, *self._others.values())

    def leave_by(self, interface: str, frames: Iterable[bytes]) -> None:
        """Send these frames by one of the other interfaces."""
        self._ways |= dict.fromkeys(frames, self._others[interface])

    def send(self, frame: bytes) -> None:
        self._ways.get(frame, self._own).send(frame)


def basis(router: VirtualRouter) -> VirtualRouter:
    """Return a router's settings that its sockets depend on: they stay open while these are equal."""
    return replace(
        router,
        name="",
        priority=0,
        preempt=False,
        preempt_delay=0.0,
        down_timer_adverts=0,
        listen=0.0,
        hand_over=0.0,
        on_conflict=OnConflict.WARN,
        sync_group=None,
        announce=replace(router.announce, repeat=0, delay=0.0, refresh=0.0, refresh_repeat=0),
        track=(),
        notify=_NO_NOTIFY,
    )


def _require_own(source: str, *, index: int) -> None:
    """Raise OSError for an address of no interface: IP_TRANSPARENT would send from any."""
    family, address = (
        (socket.AF_INET6, (source, 0, 0, index)) if ":" in source else (socket.AF_INET, (source, 0))
    )
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind(address)


def _announcements(router: VirtualRouter, address: str, mac: bytes) -> tuple[bytes, ...]:
    """Return the frames that announce where an address is (RFC 9568 section 6.4.2)."""
    if ":" in address:
        # RFC 4861 section 7.2.6: to all nodes, with the override flag, so that caches are replaced at once.
        return (neighbour_discovery.unsolicited(mac, address),)
    # RFC 5227 section 3: an ARP announcement is a request. A few devices learn from the reply form only.
    request = arp.gratuitous(mac, address, form=arp.GratuitousForm.REQUEST)
    if not router.announce.reply:
        return (request,)
    return (request, arp.gratuitous(mac, address, form=arp.GratuitousForm.REPLY))
