"""Sends the advertisements of one virtual router; each packet is built once per priority."""

import time
from collections.abc import Mapping

from appliance.core.vrrp.advert_rules import advertisement
from appliance.model.snapshot.virtual_router import HmacMode, VirtualRouter
from appliance.net.packets.vrrp_sockets import VrrpSocket
from appliance.wire.vrrp import advertisement as vrrp
from appliance.wire.vrrp import hmac_trailer
from appliance.wire.vrrp.advertisement import MULTICAST_4, MULTICAST_6


class AdvertSender:
    """Sends from the address `source` over `socket`, to the multicast group or to the unicast peers.

    `keys` are the secrets of the HMAC keys by their id.
    """

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
