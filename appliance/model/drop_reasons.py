"""Why a received VRRP packet was not used; the board of `vrrp` counts by position in this list."""

from enum import StrEnum


class DropReason(StrEnum):
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
    HMAC_UNEXPECTED = "hmac-unexpected"
    HMAC_MISSING = "hmac-missing"
    HMAC_TYPE = "hmac-type"
    HMAC_KEY = "hmac-key"
    HMAC_DIGEST = "hmac-digest"
    HMAC_TIME = "hmac-time"
    HMAC_REPLAY = "hmac-replay"
    NOT_A_PEER = "not-a-peer"
    OWN = "own"
    DESTINATION = "destination"
