"""Receives the advertisements for one virtual router: decodes and checks them, and drops what is invalid."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from appliance.core.vrrp.advert_rules import AdvertRules, Arrival
from appliance.core.vrrp.election import ReceivedAdvert
from appliance.model.drop_reasons import DropReason
from appliance.model.snapshot.virtual_router import HmacMode, VirtualRouter
from appliance.net.packets.vrrp_sockets import Datagram, VrrpSocket
from appliance.wire import literal
from appliance.wire.vrrp import advertisement, hmac_trailer
from appliance.wire.vrrp.advertisement import Advertisement, VrrpError

_SENDERS: Final = 16  # senders whose last valid packet is remembered: source addresses can be forged


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedAdvert:
    """An unused packet with our router id; `advertisement` is None if it cannot be decoded."""

    reason: DropReason
    peer: str
    advertisement: Advertisement | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvertDeviation:
    """An advertisement that is used though it differs from ours, for example in its address list."""

    reason: DropReason
    peer: str
    advertisement: Advertisement


class AdvertReceiver:
    """Receives for one virtual router over `socket`; `source` is our own address there.

    A packet equal to its sender's last valid one is not decoded again: an active router sends the same packet
    every interval. With HMAC every packet differs.
    """

    def __init__(
        self,
        router: VirtualRouter,
        socket: VrrpSocket,
        *,
        source: str,
        keys: Mapping[int, bytes],
        on_drop: Callable[[DroppedAdvert, float], None],
        on_deviation: Callable[[AdvertDeviation, float], None],
    ) -> None:
        self._router = router
        self._socket = socket
        self._source = source
        self._rules = AdvertRules(router)
        self._on_drop = on_drop
        self._on_deviation = on_deviation
        self._valid: dict[str, tuple[Datagram, ReceivedAdvert]] = {}
        hmac = router.hmac
        self._keys = keys
        self._replays = hmac_trailer.ReplayWindow(hmac_trailer.window(hmac)) if hmac else None

    def receive(self, now: float) -> Iterator[ReceivedAdvert]:
        """Yield the received valid advertisements; raises OSError."""
        for datagram in self._socket.receive():
            known = self._valid.get(datagram.source)
            heard = known[1] if known is not None and known[0] == datagram else self._decode(datagram, now)
            if heard is not None:
                yield heard

    def _decode(self, datagram: Datagram, now: float) -> ReceivedAdvert | None:
        payload = datagram.payload
        # RFC 9568 section 7.1: an advert of another virtual router on this interface is no error. The filter
        # in the kernel (`packet_filter.router_id`) saves the time to read such adverts; the decision is made
        # here.
        if len(payload) > 1 and payload[1] != self._router.router_id:
            return None
        if datagram.source == self._source:
            self._on_drop(DroppedAdvert(reason=DropReason.OWN, peer=datagram.source, advertisement=None), now)
            return None
        decoded: Advertisement | None = None
        try:
            pdu, trailer = advertisement.split(payload)
            decoded = advertisement.decode(
                pdu, source=datagram.source, destination=datagram.destination, trailer=trailer
            )
            deviation = self._checked(decoded, datagram)
            # Last: it costs most, and a wrong key is the least informative fault to operators.
            self._check_hmac(pdu, trailer, datagram.source)
        except VrrpError as error:
            dropped = DroppedAdvert(reason=error.reason, peer=datagram.source, advertisement=decoded)
            self._on_drop(dropped, now)
            return None
        heard = ReceivedAdvert(
            priority=decoded.priority,
            interval=decoded.interval,
            sender=literal.packed(datagram.source),
            peer=datagram.source,
        )
        if deviation is not None:
            self._on_deviation(
                AdvertDeviation(reason=deviation, peer=datagram.source, advertisement=decoded), now
            )
        elif self._replays is None:
            self._remember(datagram, heard)
        return heard

    def _remember(self, datagram: Datagram, heard: ReceivedAdvert) -> None:
        self._valid.pop(datagram.source, None)
        self._valid[datagram.source] = datagram, heard
        if len(self._valid) > _SENDERS:
            del self._valid[next(iter(self._valid))]

    def _checked(self, decoded: Advertisement, datagram: Datagram) -> DropReason | None:
        """Return how a valid advertisement differs from ours, None if it does not; raises VrrpError."""
        self._rules.check_arrival(
            Arrival(source=datagram.source, destination=datagram.destination, ttl=datagram.ttl)
        )
        return self._rules.check(decoded)

    def _check_hmac(self, pdu: bytes, trailer: bytes, source: str) -> None:
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
