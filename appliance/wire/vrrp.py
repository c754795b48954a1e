"""VRRP advertisements: version 2 (RFC 3768) and version 3 (RFC 9568), over IPv4 and IPv6."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

PROTOCOL: Final = 112
"""IP protocol number of VRRP (RFC 9568 section 5.1.1.4)."""

MULTICAST_4: Final = "224.0.0.18"
MULTICAST_6: Final = "ff02::12"


class Drop(StrEnum):
    """Why a received packet was not used. Log, counters and tests share these words."""

    TRUNCATED = "truncated"
    TRAILING = "trailing"
    VERSION = "version"
    TYPE = "type"
    CHECKSUM = "checksum"
    HOP_LIMIT = "hop-limit"
    ROUTER_ID = "router-id"
    ADDRESS_COUNT = "address-count"
    ADDRESS_LIST = "address-list"
    INTERVAL = "interval"
    AUTH_TYPE = "auth-type"
    PASSWORD = "password"  # noqa: S105  # a reason, no secret
    HMAC_MISSING = "hmac-missing"
    HMAC_KEY = "hmac-key"
    HMAC_DIGEST = "hmac-digest"
    HMAC_TIME = "hmac-time"
    HMAC_REPLAY = "hmac-replay"
    NOT_A_PEER = "not-a-peer"
    OWN = "own"
    DESTINATION = "destination"


class VrrpError(Exception):
    """A packet that cannot be used, and the one reason."""

    def __init__(self, reason: Drop) -> None:
        self.reason = reason
        super().__init__(reason.value)


class AuthType(StrEnum):
    """Authentication of version 2 (RFC 2338; RFC 3768 reserves the field)."""

    NONE = "none"
    PASSWORD = "password"  # noqa: S105  # a type, no secret
    AH = "ah"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advertisement:
    """One advertisement. `interval` is seconds: whole ones in version 2, hundredths to 40.95 in version 3.

    `addresses` are literal addresses without prefix length, in the order of the packet. `password` is the
    8 bytes of version 2's authentication data without the zeros that fill them, b"" for none.
    """

    version: Literal[2, 3]
    router_id: int
    priority: int
    interval: float
    addresses: tuple[str, ...]
    auth_type: AuthType = AuthType.NONE
    password: bytes = b""
