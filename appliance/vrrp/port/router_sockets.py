"""The sockets of one virtual router, on one interface as it is now: made together, closed together."""

import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from appliance.core.vrrp.advert_rules import bare
from appliance.model.snapshot.virtual_router import Notify, OnConflict, VirtualRouter
from appliance.net.files import hmac_keys
from appliance.net.loop.closer import Closer
from appliance.net.packets.frame_queue import FrameQueue
from appliance.net.packets.frames import FrameSocket
from appliance.net.packets.vrrp_sockets import VrrpSocket
from appliance.vrrp.addresses.address_interface import AddressInterface
from appliance.vrrp.port.advert_receiver import AdvertDeviation, AdvertReceiver, DroppedAdvert
from appliance.vrrp.port.advert_sender import AdvertSender
from appliance.wire.ethernet import arp, neighbour_discovery
from appliance.wire.vrrp.advertisement import MULTICAST_4, MULTICAST_6

_NO_NOTIFY: Final = Notify(active=(), backup=(), fault=(), stop=(), any=(), user=None, timeout=0.0)
_NOBODY: Final = 0  # no virtual router has this id: what speaks only hears nothing
_GROUPS: Final = {4: MULTICAST_4, 6: MULTICAST_6}


class RouterSockets:
    """What a virtual router sends and receives by, from the address `source`; raises OSError.

    `interface` is where its addresses are: a virtual MAC sends from there; adverts come to the router's own.
    """

    def __init__(
        self,
        router: VirtualRouter,
        *,
        interface: AddressInterface,
        source: str,
        closer: Closer,
        on_drop: Callable[[DroppedAdvert], None],
        on_deviation: Callable[[AdvertDeviation], None],
    ) -> None:
        _require_own(source, index=socket.if_nametoindex(router.interface))
        keys = hmac_keys.secrets(router.hmac)
        self.source = source
        self.of = basis(router)
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
            if router.virtual_mac:
                sending = VrrpSocket(
                    interface.name, family=router.family, source=source, group=None, router_id=_NOBODY
                )
                stack.enter_context(sending)
            self._frames = FrameSocket(interface.name)
            self.announcing = FrameQueue(self._frames)
            self._opened = stack.pop_all()
        self.sender = AdvertSender(router, sending, source=source, keys=keys)
        self.receiver = AdvertReceiver(
            router, self._receiving, source=source, keys=keys, on_drop=on_drop, on_deviation=on_deviation
        )
        self._announcements = {
            address: _announcements(router, address, interface.mac) for address in bare(router.addresses)
        }

    def fileno(self) -> int:
        """Return the descriptor that can be read when something is to be heard."""
        return self._receiving.fileno()

    def announce(self, repeat: int, now: float) -> int:
        """Announce every address `repeat` times, each once before any again; return how many frames went.

        What the interface cannot take at once waits in `announcing`. Raises OSError.
        """
        frames = [frame for each in self._announcements.values() for frame in each]
        return self.announcing.put(frames * repeat, now)

    def close(self) -> None:
        """Close them."""
        self._opened.close()
        self._closer.close(self._frames)


def basis(router: VirtualRouter) -> VirtualRouter:
    """Return a router without what its sockets do not depend on: where these are equal, they can stay."""
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
    """Raise OSError when an address is none of this machine's: advertisements from it would not leave."""
    family, address = (
        (socket.AF_INET6, (source, 0, 0, index)) if ":" in source else (socket.AF_INET, (source, 0))
    )
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind(address)


def _announcements(router: VirtualRouter, address: str, mac: bytes) -> tuple[bytes, ...]:
    if router.family == 6:
        return (neighbour_discovery.unsolicited(mac, address),)
    request = arp.gratuitous(mac, address, form=arp.GratuitousForm.REQUEST)
    if not router.announce.reply:
        return (request,)
    return (request, arp.gratuitous(mac, address, form=arp.GratuitousForm.REPLY))
