"""Values of VRRP in a configuration: virtual addresses, interfaces, router ids, secrets, commands.

Every function takes whatever the file holds, returns the value, and raises ValueError with a message that
says what would be right. A message never shows a secret.
"""

import re
import shlex
from ipaddress import ip_interface
from typing import Final

from appliance.model.config.values.addresses import Address, literal
from appliance.model.config.values.names import file_path
from appliance.model.config.values.units import INTEGER_PATTERN, duration_between
from appliance.model.messages.quoting import contrast, shown

INTERFACE_PATTERN: Final = r"^[!-.0-~]{1,15}$"
VIRTUAL_ADDRESS_PATTERN: Final = r"^[0-9A-Fa-f:.]+/[0-9]{1,3}( dev [!-.0-~]{1,15})?$"
KEY_ID_PATTERN: Final = r"^([1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])$"
PASSWORD_PATTERN: Final = r"^[^\s\u0000-\u001f\u007f-\u009f\ud800-\udfff\ufffd]+$"  # noqa: S105  # a pattern
SECRET_PATTERN: Final = r"^((hex:)?([0-9A-Fa-f]{2}){32,64}|(ascii:)?[!-~]{32,64}|file:/.+)$"  # noqa: S105  # a pattern
KEY_FILE: Final = "file:"
"""Prefix of a value that names a file with the key, in place of the key."""

LEAST_KEY: Final = 32
MOST_KEY: Final = 64
DEVICE: Final = " dev "
"""What stands between a virtual address and the interface that it is held on."""

USER_PATTERN: Final = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$"
MOST_ROUTER_ID: Final = 255

_LENGTH: Final = re.compile(r"[0-9]{1,3}", re.ASCII)
_LONGEST_WORDS: Final = 4096
_WIDTHS: Final = {4: 32, 6: 128}
_POINT_TO_POINT: Final = 31
"""From this prefix length on each address is a host's: a network of two has none of its own (RFC 3021)."""


def virtual_address(value: object) -> str:
    """Return an address with its prefix length, `10.0.0.200/24`, as the kernel spells it.

    ` dev INTERFACE` behind it is where it is held, if not on the interface of the advertisements.
    """
    right = "an address with its prefix length, such as `10.0.0.200/24`"
    whole = value if isinstance(value, str) else ""
    text, dev, device = whole.partition(DEVICE)
    behind = f"{DEVICE}{interface(device)}" if dev else ""
    host, slash, length = text.partition("/")
    address = _unscoped(host)
    if address is None:
        raise ValueError(f"must be {right}, not {shown(value)}")
    if not slash:
        wide = _WIDTHS[address.version]
        raise ValueError(
            f"{shown(value)} has no prefix length: `{text}/{wide}` is the address alone, "
            "else the length of its network"
        )
    if not _LENGTH.fullmatch(length) or int(length) > _WIDTHS[address.version]:
        raise ValueError(f"{shown(length)} is not a prefix length: 0 to {_WIDTHS[address.version]}")
    _refuse_shared(address, shown(value))
    found = ip_interface(f"{address}/{length}")
    if _names_network(str(found.network.network_address), address, int(length)):
        raise ValueError(f"{shown(value)} is the address of the network itself, not of a host in it")
    return f"{found}{behind}"


def router_address(value: object) -> str:
    """Return the literal address of a router: a peer's or one of our own."""
    address = _unscoped(value) if isinstance(value, str) else None
    if address is None:
        raise ValueError(f"must be an address such as `10.0.0.34`, not {shown(value)}")
    _refuse_shared(address, shown(value))
    return str(address)


def interface(value: object) -> str:
    """Return the name of a network interface (dev_valid_name of the kernel)."""
    if isinstance(value, str) and re.fullmatch(INTERFACE_PATTERN, value) and value not in {".", ".."}:
        return value
    raise ValueError(f"must be the name of an interface such as `ens192`, not {shown(value)}")


def label(value: object) -> str:
    """Return the label of an IPv4 address (IFA_LABEL, as long as an interface's name)."""
    if isinstance(value, str) and re.fullmatch(INTERFACE_PATTERN, value):
        return value
    raise ValueError(f"must be 1 to 15 visible characters such as `ens192:vip`, not {shown(value)}")


def router_id(value: object) -> int | None:
    """Return a virtual router id, None for `auto`."""
    if value == "auto":
        return None
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_ROUTER_ID:
        return value
    raise ValueError(f"must be `auto` or 1 to {MOST_ROUTER_ID}{contrast(value, plain=INTEGER_PATTERN)}")


def key_id(value: str) -> str:
    """Return the id of an HMAC key, 1 to 255, as a key of the file."""
    if re.fullmatch(KEY_ID_PATTERN, value):
        return value
    raise ValueError(f"{shown(value)} is not the id of a key: 1 to 255")


def secret(value: object) -> str:
    """Return the hexadecimal digits of 32 to 64 bytes, or `file:` and the path of what has them."""
    text = value if isinstance(value, str) else ""
    if text.startswith(KEY_FILE):
        return KEY_FILE + file_path(text.removeprefix(KEY_FILE))
    found = key_bytes(text)
    if found is None:
        raise ValueError(
            "must be 32 to 64 bytes, in quotes: 64 to 128 hexadecimal digits, or 32 to 64 visible ASCII "
            "characters, or `file:/path`"
        )
    return found.hex()


def key_bytes(text: str) -> bytes | None:
    """Return the bytes of a key, None where it is none. It is written as `hex:DIGITS` or `ascii:TEXT`.

    That is keepalived's notation. The prefix may be left out; then a text of hexadecimal digits is
    hexadecimal.
    """
    digits, characters = text.removeprefix("hex:"), text.removeprefix("ascii:")
    if re.fullmatch(r"([0-9A-Fa-f]{2})+", digits) and LEAST_KEY <= len(digits) // 2 <= MOST_KEY:
        return bytes.fromhex(digits)
    if text.startswith("hex:") or not re.fullmatch(r"[!-~]+", characters):
        return None
    return characters.encode() if LEAST_KEY <= len(characters) <= MOST_KEY else None


def password(value: object) -> str:
    """Return a simple password: visible characters, which are sent as UTF-8."""
    if isinstance(value, str) and re.fullmatch(PASSWORD_PATTERN, value):
        return value
    raise ValueError("must be text of visible characters without spaces, in quotes if need be")


def words(value: object) -> tuple[str, ...]:
    """Return the words of a command, from a text that is split as a shell would, or from a list."""
    found = _split(value) if isinstance(value, str) else value
    if not isinstance(found, list) or not found or not all(isinstance(word, str) for word in found):
        raise ValueError(f"must be a command such as `/usr/local/bin/tell active`, not {shown(value)}")
    if not found[0].startswith("/"):
        raise ValueError(f"{shown(found[0])} is not an absolute path, from `/` on: no directory is searched")
    if sum(map(len, found)) > _LONGEST_WORDS or any("\0" in word for word in found):
        raise ValueError(f"is no command: more than {_LONGEST_WORDS} characters, or a zero byte")
    return tuple(found)


def user(value: object) -> str:
    """Return the name of a user."""
    if isinstance(value, str) and re.fullmatch(USER_PATTERN, value):
        return value
    raise ValueError(f"must be the name of a user such as `nobody`, not {shown(value)}")


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{shown(text)} cannot be split into words: {str(error).lower()}") from None


def _unscoped(text: str) -> Address | None:
    """Return a literal address, None for another text; a zone (`%eth0`) is refused: `interface` says it."""
    return None if "%" in text else literal(text)


def _refuse_shared(address: Address, quoted: str) -> None:
    if address.is_unspecified or address.is_multicast or str(address) == "255.255.255.255":
        raise ValueError(f"{quoted} is no address of one host")


def _names_network(network: str, address: Address, length: int) -> bool:
    return address.version == 4 and length < _POINT_TO_POINT and network == str(address)


def advert(value: object) -> float:
    """Return an advertisement interval in seconds: from version 3's shortest to version 2's longest."""
    return duration_between(value, least="10ms", most="255s")


def hand_over(value: object) -> float:
    """Return the longest wait of a hand-over in seconds: at most 1 minute, because a stop waits for it."""
    return duration_between(value, least="10ms", most="1m")
