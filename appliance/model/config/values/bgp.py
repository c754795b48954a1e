"""Values of BGP in a configuration: shared addresses, neighbours, numbers, communities, passwords, times.

Every function takes whatever the file holds, returns the value, and raises ValueError with a message that
says what would be right. A message never shows a password.
"""

import re
from ipaddress import ip_address
from typing import Final

from appliance.model.config.values.names import file_path
from appliance.model.config.values.units import INTEGER_PATTERN, duration_between, is_off
from appliance.model.config.values.vrrp import KEY_FILE, interface, router_address, virtual_address
from appliance.model.messages.quoting import contrast, shown

SHARED_ADDRESS_PATTERN: Final = r"^[0-9A-Fa-f:.]+/(32|128)$"
NEIGHBOR_PATTERN: Final = r"^[0-9A-Fa-f:.]+(%[!-.0-~]{1,15})?$"
COMMUNITY_PATTERN: Final = r"^[0-9]{1,5}:[0-9]{1,5}$"
PASSWORD_PATTERN: Final = r"^(file:/.+|[!#-~]{1,80})$"  # noqa: S105  # a pattern
MOST_ASN: Final = 2**32 - 1
LONGEST_PASSWORD: Final = 80
"""Most bytes of a password (TCP_MD5SIG_MAXKEYLEN of linux/tcp.h)."""

AS_TRANS: Final = 23456  # RFC 6793, section 9
_RESERVED: Final = frozenset({0, AS_TRANS, 65535, MOST_ASN})  # RFC 7607, RFC 6793, RFC 7300
_PASSWORD: Final = re.compile(r"[!#-~]{1,80}")
_LOCAL_TABLES: Final = range(253, 256)  # RT_TABLE_DEFAULT, MAIN, LOCAL of linux/rtnetlink.h


def shared_address(value: object) -> str:
    """Return the address of one host with its prefix length, `198.51.100.10/32` or `2001:db8::10/128`."""
    found = virtual_address(value)
    address, _, length = found.partition("/")
    whole = ip_address(address).max_prefixlen
    if length != str(whole):
        raise ValueError(f"must be announced as one host, `{address}/{whole}`, not {shown(value)}")
    return found


def neighbor_address(value: object) -> str:
    """Return the address of a neighbour; a link-local one has its interface, `fe80::1%ens192`."""
    text, zone, device = value.partition("%") if isinstance(value, str) else ("", "", "")
    address = router_address(text if isinstance(value, str) else value)
    if ip_address(address).is_link_local and ":" in address:
        if not zone:
            raise ValueError(f"{shown(value)} is link-local: add its interface, `{address}%ens192`")
        return f"{address}%{interface(device)}"
    if zone:
        raise ValueError(f"{shown(value)} is not link-local, so no interface belongs to it: `{address}`")
    return address


def asn(value: object) -> int:
    """Return the number of an autonomous system, 1 to 4294967294 without reserved ones."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_ASN:
        if value in _RESERVED:
            raise ValueError(
                f"{value} is reserved: private ones are 64512 to 65534, 4200000000 to 4294967294"
            )
        return value
    said = contrast(value, plain=INTEGER_PATTERN)
    raise ValueError(f"must be the number of an autonomous system, 1 to {MOST_ASN - 1}{said}")


def router_id(value: object) -> str | None:
    """Return a BGP identifier, None for `auto`."""
    if value == "auto":
        return None
    found = router_address(value) if isinstance(value, str) and ":" not in value else None
    if found is None:
        raise ValueError(f"must be `auto` or an IPv4 address, not {shown(value)}")
    return found


def community(value: object) -> str:
    """Return a community as `ASN:VALUE`, both 0 to 65535 (RFC 1997)."""
    text = value if isinstance(value, str) else ""
    if re.fullmatch(COMMUNITY_PATTERN, text):
        high, low = map(int, text.split(":"))
        if max(high, low) <= 0xFFFF:
            return f"{high}:{low}"
    raise ValueError(f'must be a community such as `"64512:100"`, not {shown(value)}')


def password(value: object) -> str:
    """Return a password, or `file:` and the path of the file that has it."""
    text = value if isinstance(value, str) else ""
    if text.startswith(KEY_FILE):
        return KEY_FILE + file_path(text.removeprefix(KEY_FILE))
    if not is_password(text):
        raise ValueError(
            f"must be 1 to {LONGEST_PASSWORD} visible ASCII characters without a double quote, "
            "or `file:/path`"
        )
    return text


def is_password(text: str) -> bool:
    """Return whether a text can be the password of a session; BIRD has no escape for a double quote."""
    return _PASSWORD.fullmatch(text) is not None


def table(value: object) -> int:
    """Return the number of a routing table that only announced addresses are in."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_ASN:
        if value in _LOCAL_TABLES:
            raise ValueError(f"{value} is one of the kernel's own tables: use another number, such as 198")
        return value
    raise ValueError(f"must be the number of a routing table{contrast(value, plain=INTEGER_PATTERN)}")


def hold_time(value: object) -> float:
    """Return BGP's hold time in seconds: whole ones, from 3 on (RFC 4271, section 4.2)."""
    return _whole(value, least="3s", most="65535s")


def restart_time_or_off(value: object) -> float:
    """Return BGP's restart time in seconds, 0.0 for `off`: whole ones, 12 bits (RFC 4724, section 3)."""
    return 0.0 if is_off(value) else _whole(value, least="1s", most="4095s")


def bfd_interval(value: object) -> float:
    """Return the time between BFD packets in seconds; below 50 ms a busy machine misses some."""
    return duration_between(value, least="50ms", most="10s")


def _whole(value: object, *, least: str, most: str) -> float:
    seconds = duration_between(value, least=least, most=most)
    if seconds % 1:
        raise ValueError(f"{shown(value)} must be whole seconds")
    return seconds
