"""The HMAC trailer after messages: keepalived 2.4's `auth_hmac`, draft-cassen-vrrp-auth-hmac.

28 bytes: type 1, key id, two reserved zeros, a sequence of 64 bits that is a clock (seconds, 2**-16 seconds,
counter), and the first 16 bytes of HMAC-SHA256 over a pseudo-header (family, version, router id, 0, source in
16 bytes), the message with a zero checksum, and the trailer with a zero digest. The destination is not
covered.
"""

import hashlib
import hmac
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from appliance.model.drop_reasons import DropReason
from appliance.model.snapshot.virtual_router import AntiReplay, Hmac
from appliance.wire.literal import packed
from appliance.wire.vrrp import advertisement
from appliance.wire.vrrp.advertisement import HMAC_BYTES, VrrpError

DIGEST_BYTES: Final = 16
SENDERS: Final = 64
"""Most senders whose last sequence is remembered: all of them have a key, so there are only a few."""

_TYPE: Final = 1
_PREFIX: Final = struct.Struct("!BBHIHH")
_TICKS: Final = 1 << 16
_WRAP: Final = 1 << 64
_SHORTEST: Final = 8  # RFC 9568 section 5.1: the fixed part of a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """A sequence: Unix `seconds` modulo 2**32, `fraction` in 2**-16 seconds, `counter` within those."""

    seconds: int
    fraction: int
    counter: int


def seal(pdu: bytes, *, source: str, key_id: int, secret: bytes, clock: Stamp) -> bytes:
    """Return the trailer of a message; its checksum may be anything."""
    prefix = _PREFIX.pack(_TYPE, key_id, 0, clock.seconds, clock.fraction, clock.counter)
    return prefix + _digest(pdu, prefix, source=source, secret=secret)


def sealed(pdu: bytes, *, source: str, destination: str, key_id: int, secret: bytes, clock: Stamp) -> bytes:
    """Return message and trailer ready to send: over IPv6 the checksum covers the trailer too."""
    trailer = seal(pdu, source=source, key_id=key_id, secret=secret, clock=clock)
    return advertisement.with_trailer(pdu, trailer, source=source, destination=destination)


def verify(pdu: bytes, trailer: bytes, *, source: str, keys: Mapping[int, bytes]) -> Stamp:
    """Check the digest of a message and return its stamp, the time of sending; raises VrrpError.

    TRAILING: the trailer is incomplete. HMAC_TYPE: another scheme. HMAC_KEY: the key is not in `keys`.
    """
    if len(trailer) != HMAC_BYTES:
        raise VrrpError(DropReason.TRAILING)
    if len(pdu) < _SHORTEST:
        raise VrrpError(DropReason.TRUNCATED)
    kind, key_id, reserved, seconds, fraction, counter = _PREFIX.unpack_from(trailer)
    if kind != _TYPE or reserved:
        raise VrrpError(DropReason.HMAC_TYPE)
    if key_id not in keys:
        raise VrrpError(DropReason.HMAC_KEY)
    expected = _digest(pdu, trailer[: _PREFIX.size], source=source, secret=keys[key_id])
    if not hmac.compare_digest(expected, trailer[_PREFIX.size :]):
        raise VrrpError(DropReason.HMAC_DIGEST)
    return Stamp(seconds=seconds, fraction=fraction, counter=counter)


def _digest(pdu: bytes, prefix: bytes, *, source: str, secret: bytes) -> bytes:
    sender = packed(source)
    head = bytes((4 if len(sender) == 4 else 6, pdu[0] >> 4, pdu[1], 0)) + sender.ljust(16, b"\0")
    whole = head + advertisement.unsummed(pdu) + prefix + bytes(DIGEST_BYTES)
    return hmac.digest(secret, whole, hashlib.sha256)[:DIGEST_BYTES]


def window(hmac: Hmac) -> float | None:
    """Return how many seconds a stamp may differ from now; None if its time does not matter."""
    return hmac.time_window if hmac.anti_replay is AntiReplay.TIME else None


class Sequence:
    """Makes the stamps of one sender: the clock, or the last stamp plus one if the clock has not advanced.

    A clock that was set back by more than `window` seconds starts again: receivers drop a stamp that far
    ahead of them, and have forgotten it. Without a window it never does: receivers forget nothing.
    """

    def __init__(self, window: float | None) -> None:
        self._window = window
        self._last: int | None = None

    def next(self, now_wall: float) -> Stamp:
        """Return the stamp of a message sent now, in Unix seconds."""
        clock = int(now_wall * _TICKS) * _TICKS % _WRAP
        last = self._last
        if last is not None and not _is_after(clock, last) and self._is_known(last, now_wall):
            clock = (last + 1) % _WRAP
        self._last = clock
        seconds, rest = divmod(clock, _TICKS * _TICKS)
        fraction, counter = divmod(rest, _TICKS)
        return Stamp(seconds=seconds, fraction=fraction, counter=counter)

    def _is_known(self, last: int, now_wall: float) -> bool:
        return self._window is None or _ahead(last, now_wall) <= self._window


class ReplayWindow:
    """Drops replayed messages: stamps must grow and, with a `window`, be within its seconds of now."""

    def __init__(self, window: float | None) -> None:
        self._window = window
        self._last: dict[str, int] = {}

    def check(self, source: str, stamp: Stamp, now_wall: float) -> None:
        """Check and remember a verified stamp; raises VrrpError with HMAC_TIME or HMAC_REPLAY. Unix seconds.

        A remembered stamp that is now outside the window is not compared with: a sender whose clock was wrong
        is accepted again once it is corrected.
        """
        number = (stamp.seconds * _TICKS + stamp.fraction) * _TICKS + stamp.counter
        if not self._is_fresh(number, now_wall):
            raise VrrpError(DropReason.HMAC_TIME)
        last = self._last.get(source)
        if last is not None and self._is_fresh(last, now_wall) and not _is_after(number, last):
            raise VrrpError(DropReason.HMAC_REPLAY)
        self._last.pop(source, None)  # moves the sender to the end; the first one is the least recent
        self._last[source] = number
        if len(self._last) > SENDERS:
            del self._last[next(iter(self._last))]

    def _is_fresh(self, number: int, now_wall: float) -> bool:
        return self._window is None or abs(_ahead(number, now_wall)) <= self._window


def _is_after(number: int, other: int) -> bool:
    """Compare by RFC 1982: the sequence wraps with its 32 bits of seconds, in 2106."""
    return 0 < (number - other) % _WRAP < _WRAP // 2


def _ahead(number: int, now_wall: float) -> int:
    """Return the whole seconds by which a sequence is ahead of now; negative if behind."""
    half = 1 << 31
    return ((number // (_TICKS * _TICKS)) - int(now_wall) + half) % (2 * half) - half
