"""Addresses as operators write them: `host:port`, networks, DNS names, and names of our own things.

Every function takes whatever the file holds, returns the value, and raises ValueError with a message that
says what would be right. A v4-mapped IPv6 address becomes the IPv4 address that it maps.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final

from appliance.model.messages.quoting import shown

ENDPOINT_PATTERN: Final = r"^(\[[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?\]|[A-Za-z0-9._-]+):[0-9]{1,5}$"
PORT_RANGE_PATTERN: Final = r"^[0-9]{4,5}-[0-9]{4,5}$"
_LITERAL: Final = re.compile(r"[0-9A-Fa-f:.]{2,45}(%[A-Za-z0-9._-]{1,15})?")
_BYTE: Final = r"(?:0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
_UNICAST: Final = re.compile(
    rf"((?:[1-9][0-9]?|1[0-9]{{2}}|2[01][0-9]|22[0-3])(?:\.{_BYTE}){{3}}):([1-9][0-9]{{0,4}})"
)
"""What most servers have: an IPv4 address that is neither unspecified nor multicast, and a port."""

_LABEL: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_HOST_LABEL: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_LONGEST_NAME: Final = 253
_PORTS: Final = range(1, 65536)
_UNPRIVILEGED: Final = 1024
_MAPPED_BITS: Final = 96
_REMEMBERED: Final = 1 << 16  # addresses, as many as a file can have servers
_BROADCAST: Final = IPv4Address("255.255.255.255")
_ENDPOINT: Final = "an address with its port, such as `10.0.0.34:6443` or `[2001:db8::34]:6443`"

Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A TCP address: a literal, without brackets, or a DNS name; and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def endpoint(value: object) -> Endpoint:
    """Return a `host:port` to listen on; an IPv6 address is in brackets."""
    text = _text(value, right=_ENDPOINT)
    if text.isdecimal():
        raise ValueError(f"{shown(value)} is a port alone: `[::]:{text}` is that port on every address")
    host, colon, port = text.rpartition(":")
    # With one colon, as most have it, it is no literal alone.
    if (":" in host or not colon) and literal(text.strip("[]")) is not None:
        raise ValueError(f"{shown(value)} has no port: `{_bracketed(text.strip('[]'))}:PORT`")
    if not colon:
        raise ValueError(f"{shown(value)} has no port: `{text}:PORT`")
    if host in {"", "*"}:
        raise ValueError(f"{shown(value)} has no address: `[::]:{port}` is every address")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError(f"an IPv6 address needs brackets: `[{host.strip('[]')}]:{port}`")
    return Endpoint(host=_host(host), port=_port(port))


def server_endpoint(value: object) -> Endpoint:
    """Return a `host:port` that connections can be made to."""
    text = _text(value, right=_ENDPOINT)
    # With 40,000 servers the long way is a fifth of the time to load the file.
    usual = _UNICAST.fullmatch(text)
    if usual is not None and (number := int(usual[2])) in _PORTS:
        return Endpoint(host=usual[1], port=number)
    host, colon, port = text.rpartition(":")
    if text.isdecimal():
        raise ValueError(
            f"{shown(value)} is a port alone: a server needs host:port, such as `10.0.0.34:{text}`"
        )
    if colon and host in {"", "*"}:
        raise ValueError(
            f"{shown(value)} has no address: a server needs host:port, such as `10.0.0.34:{port}`"
        )
    found = endpoint(value)
    _refuse_many(found.host)
    return found


def server_endpoint_to_come(value: object) -> Endpoint:
    """Return a `host:port` that connections can be made to; `:6443` has a host of "", which is to come.

    OpenShift's monitor renders that of a node that has no address yet.
    """
    text = str(value)
    port = text.removeprefix(":")
    return Endpoint(host="", port=_port(port)) if port != text and ":" not in port else server_endpoint(value)


def host(value: object) -> str:
    """Return an address or DNS name without a port."""
    return _host(_text(value, right="an address or a DNS name"))


def server_host(value: object) -> str:
    """Return an address or DNS name, without a port, that connections can be made to."""
    found = host(value)
    _refuse_many(found)
    return found


def dns_name(value: object) -> str:
    """Return a DNS name (RFC 1123 s.2.1: labels of letters, digits and inner hyphens)."""
    return _name(_text(value, right="a DNS name"), _LABEL, "letters, digits and hyphens")


def network(value: object) -> str:
    """Return a network in CIDR form; a bare address is a network of that one address."""
    text = _text(value, right="a network such as `10.0.0.0/24` or an address")
    try:
        return str(_unmapped(ip_network(text)))
    except ValueError:
        raise ValueError(_network_fault(text)) from None


def port_range(value: object) -> tuple[int, int]:
    """Return the lowest and the highest port of `low-high`, from which connections can be made."""
    text = _text(value, right="a range of ports such as `20000-39999`")
    if not re.fullmatch(PORT_RANGE_PATTERN, text, re.ASCII):
        raise ValueError(f"{shown(value)} is not a range of ports such as `20000-39999`")
    low, high = map(_port, text.split("-"))
    if low < _UNPRIVILEGED:
        raise ValueError(f"{shown(value)} has ports below {_UNPRIVILEGED}, which services listen on")
    if low > high:
        raise ValueError(f"{shown(value)} is reversed: write `{high}-{low}`")
    return low, high


@lru_cache(maxsize=_REMEMBERED)
def literal(text: str) -> Address | None:
    """Return the address that a text spells, None where it spells none; cached, as several callers ask."""
    if not _LITERAL.fullmatch(text):
        return None
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_loopback(host: str) -> bool:
    """Return whether a host is the loopback of this machine, which other machines do not reach."""
    address = literal(host)
    return host == "localhost" if address is None else address.is_loopback


def _text(value: object, *, right: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"must be {right}, not {shown(value)}")  # noqa: TRY004  # pydantic wants ValueError
    return str(value)


def _host(text: str) -> str:
    address = literal(text.removeprefix("[").removesuffix("]"))
    if address is not None:
        return str(address)
    if text.startswith("["):
        raise ValueError(f"{shown(text)} is not an IPv6 address in brackets")
    # Hosts files and name servers within networks, such as Docker's, know names with underscores.
    return _name(text, _HOST_LABEL, "letters, digits, hyphens and underscores")


def _name(text: str, label: re.Pattern[str], characters: str) -> str:
    if len(text) > _LONGEST_NAME:
        raise ValueError(f"{shown(text)} is longer than the {_LONGEST_NAME} characters of a DNS name")
    labels = text.removesuffix(".").split(".")
    if not all(label.fullmatch(each) for each in labels):
        raise ValueError(f"{shown(text)} is not a DNS name: labels of {characters}, joined by dots")
    if labels[-1].isdecimal():
        raise ValueError(f"{shown(text)} is not an IPv4 address: four numbers from 0 to 255")
    return text


def _refuse_many(host: str) -> None:
    address = literal(host)
    if address is None:
        return
    if address.is_unspecified:
        raise ValueError(
            f"{shown(host)} is every address of this machine: a server needs one, such as `127.0.0.1`"
        )
    if address.is_multicast or address == _BROADCAST:
        raise ValueError(f"{shown(host)} is a multicast or broadcast address: a server needs one of its own")


def _port(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) in _PORTS:
        return int(text)
    raise ValueError(f"{shown(text)} is not a port: 1 to 65535")


def _bracketed(text: str) -> str:
    return f"[{text}]" if ":" in text else text


def _network_fault(text: str) -> str:
    try:
        right = _unmapped(ip_network(text, strict=False))
    except ValueError:
        return f"{shown(text)} is not a network: write `10.0.0.0/24`, `2001:db8::/64` or one address"
    return f"{shown(text)} has bits set beyond its prefix: the network is `{right}`"


def _unmapped(found: IPv4Network | IPv6Network) -> IPv4Network | IPv6Network:
    mapped = getattr(found.network_address, "ipv4_mapped", None)
    if mapped is None or found.prefixlen < _MAPPED_BITS:
        return found
    return IPv4Network((mapped, found.prefixlen - _MAPPED_BITS))
