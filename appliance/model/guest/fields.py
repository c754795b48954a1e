"""The values of single guest properties: each function returns what a text means, or raises ValueError.

A message says what would be right.
"""

from typing import Final

from appliance.model.addresses import dns_name, literal, server_host
from appliance.model.router_words import router_address, virtual_address
from appliance.model.units import shown

_LONGEST_HOST_NAME: Final = 64  # HOST_NAME_MAX of Linux


def host_name(text: str) -> str:
    """Return the name of a machine (hostname(7)), without a dot at its end."""
    if literal(text) is not None:
        raise ValueError(f"{shown(text)} is an address: a name such as `lb-1.example.com`")
    name = dns_name(text).removesuffix(".")
    if len(name) > _LONGEST_HOST_NAME:
        raise ValueError(f"{shown(text)} is longer than the {_LONGEST_HOST_NAME} characters of a host name")
    return name


def own_address(text: str) -> str:
    """Return an address with its prefix length; IPv4 may have a netmask."""
    host, slash, length = text.partition("/")
    if literal(host) is None:
        raise ValueError(
            f"must be an address with its prefix length, such as `10.0.0.11/24`, not {shown(text)}"
        )
    if not slash:
        raise ValueError(f"{shown(text)} has no prefix length: for example `{text}/{_usual(text)}`")
    if literal(length) is not None:
        return virtual_address(f"{host}/{_prefix_length(length)}")
    return virtual_address(text)


def shared_address(text: str) -> str:
    """Return a virtual address, with its prefix length where it is written."""
    return virtual_address(text) if "/" in text else router_address(text)


def member(text: str) -> str:
    """Return the address or DNS name of a server; the port is ours to know."""
    host, colon, port = text.rpartition(":")
    if colon and port.isdecimal() and literal(text) is None:
        raise ValueError(f"{shown(text)} has a port: `{host.strip('[]')}` alone")
    if "/" in text:
        raise ValueError(f"{shown(text)} has a prefix length: `{text.partition('/')[0]}` alone")
    return server_host(text)


def peer(text: str) -> str:
    """Return the address of a router, a resolver or a gateway."""
    if "/" in text and literal(text.partition("/")[0]) is not None:
        raise ValueError(f"{shown(text)} has a prefix length: `{text.partition('/')[0]}` alone")
    return router_address(text)


def priority(text: str) -> int:
    """Return a VRRP priority."""
    if text.isascii() and text.isdecimal() and len(text) <= 3 and 1 <= int(text) <= 254:
        return int(text)
    raise ValueError(f"must be a number from 1 to 254, not {shown(text)}")


def _usual(address: str) -> int:
    return 64 if ":" in address else 24


def _prefix_length(netmask: str) -> int:
    """Return how many leading ones an IPv4 netmask has; raises ValueError where others follow a zero."""
    mask = literal(netmask)
    bits = f"{int(mask or 0):032b}"
    if mask is None or mask.version != 4 or "01" in bits:
        raise ValueError(f"{shown(netmask)} is not a netmask: such as `255.255.255.0`, or 24")
    return bits.count("1")
