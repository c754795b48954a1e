"""Receives the advertisements for one virtual router, and tells what is to be used from what is dropped."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from appliance.core.vrrp.advert_rules import AdvertRules, Arrival
from appliance.core.vrrp.election import Heard
from appliance.model.drop_reasons import DropReason
from appliance.model.snapshot.virtual_router import HmacMode, VirtualRouter
from appliance.net.packets.vrrp_sockets import Datagram, VrrpSocket
from appliance.wire import literal
from appliance.wire.vrrp import advertisement, hmac_trailer
from appliance.wire.vrrp.advertisement import Advertisement, VrrpError

_SENDERS: Final = 16  # whose last good packet is remembered: senders can be made up


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedAdvert:
    """A packet with our router id that is not used; `said` is what could be read of it."""

    reason: DropReason
    peer: str
    said: Advertisement | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvertDeviation:
    """An advertisement that is used though it is not as it should be."""

    reason: DropReason
    peer: str
    said: Advertisement


class AdvertReceiver:
    """What one virtual router hears over `socket`.

    A packet like the last good one of its sender is not read again.
    """

    def __init__(
        self,
        router: VirtualRouter,
        socket: VrrpSocket,
        *,
        source: str,
        keys: Mapping[int, bytes],
        on_drop: Callable[[DroppedAdvert], None],
        on_deviation: Callable[[AdvertDeviation], None],
    ) -> None:
        self._router = router
        self._socket = socket
        self._source = source
        self._reception = AdvertRules(router)
        self._on_drop = on_drop
        self._on_deviation = on_deviation
        self._good: dict[str, tuple[Datagram, Heard]] = {}
        hmac = router.hmac
        self._keys = keys
        self._replays = hmac_trailer.ReplayWindow(hmac_trailer.window(hmac)) if hmac else None

    def receive(self) -> Iterator[Heard]:
        """Yield what was heard since the last time; raises OSError."""
        for datagram in self._socket.receive():
            known = self._good.get(datagram.source)
            heard = known[1] if known is not None and known[0] == datagram else self._read(datagram)
            if heard is not None:
                yield heard

    def _read(self, datagram: Datagram) -> Heard | None:
        payload = datagram.payload
        # Other virtual routers on the same interface are none of our business (RFC 9568 section 7.1).
        if len(payload) > 1 and payload[1] != self._router.router_id:
            return None
        if datagram.source == self._source:
            self._on_drop(DroppedAdvert(reason=DropReason.OWN, peer=datagram.source, said=None))
            return None
        said: Advertisement | None = None
        try:
            pdu, trailer = advertisement.split(payload)
            said = advertisement.decode(
                pdu, source=datagram.source, destination=datagram.destination, trailer=trailer
            )
            deviation = self._checked(said, datagram)
            self._check_seal(pdu, trailer, datagram.source)
        except VrrpError as error:
            self._on_drop(DroppedAdvert(reason=error.reason, peer=datagram.source, said=said))
            return None
        heard = Heard(
            priority=said.priority,
            interval=said.interval,
            sender=literal.packed(datagram.source),
            peer=datagram.source,
        )
        if deviation is not None:
            self._on_deviation(AdvertDeviation(reason=deviation, peer=datagram.source, said=said))
        elif self._replays is None:
            self._remember(datagram, heard)
        return heard

    def _remember(self, datagram: Datagram, heard: Heard) -> None:
        self._good.pop(datagram.source, None)
        self._good[datagram.source] = datagram, heard
        if len(self._good) > _SENDERS:
            del self._good[next(iter(self._good))]

    def _checked(self, said: Advertisement, datagram: Datagram) -> DropReason | None:
        """Return how it deviates; the signature is looked at last, as it costs most and tells least."""
        self._reception.check_arrival(
            Arrival(source=datagram.source, destination=datagram.destination, ttl=datagram.ttl)
        )
        return self._reception.check(said)

    def _check_seal(self, pdu: bytes, trailer: bytes, source: str) -> None:
        hmac = self._router.hmac
        if hmac is None or self._replays is None:
            if trailer:
                raise VrrpError(DropReason.HMAC_UNEXPECTED)
            return
        if not trailer:
            if hmac.mode is HmacMode.ENFORCE:
                raise VrrpError(DropReason.HMAC_MISSING)
            return
        stamp = hmac_trailer.verify(pdu, trailer, source=source, keys=self._keys)
        self._replays.check(source, stamp, time.time())
