"""The values of single guest properties: meaning of a text, or ValueError that describes a correct one."""

import re
from ipaddress import IPv4Network, IPv6Network, ip_interface
from typing import Final

from appliance.model.config.values.addresses import Address, dns_name, literal, server_host
from appliance.model.config.values.vrrp import router_address, virtual_address
from appliance.model.messages.quoting import shown

_LONGEST_HOST_NAME: Final = 64  # HOST_NAME_MAX of Linux
_UNREACHABLE: Final = (IPv4Network("0.0.0.0/8"), IPv4Network("240.0.0.0/4"))  # RFC 6890 s.2.2.2
_SHORTEST: Final = {4: 8, 6: 16}
_RANGE: Final = re.compile(r"[0-9]+(\.[0-9]+){3}-[0-9.]+")


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
    found = virtual_address(f"{host}/{_prefix_length(length)}" if literal(length) else text)
    _refuse_unreachable(found)
    if ip_interface(found).is_link_local and ":" in found:
        raise ValueError(f"{shown(text)} is link-local: each interface has one of those in any case")
    return found


def virtual_ip(text: str) -> str:
    """Return a virtual address, with its prefix length if written."""
    found = virtual_address(text) if "/" in text else router_address(text)
    _refuse_unreachable(found)
    return found


def member(text: str) -> str:
    """Return the address or DNS name of a server; the ports are fixed, so none may be given."""
    if "://" in text:
        authority = text.partition("://")[2].partition("/")[0]
        raise ValueError(f"{shown(text)} is a URL: {shown(_without_port(authority))} alone")
    if _without_port(text) != text:
        raise ValueError(f"{shown(text)} has a port: {shown(_without_port(text))} alone")
    if "/" in text:
        raise ValueError(f"{shown(text)} has a prefix length: {shown(text.partition('/')[0])} alone")
    if _RANGE.fullmatch(text):
        raise ValueError(f"{shown(text)} is a range: write each address, with commas between them")
    return server_host(text).lower().removesuffix(".")


def host_address(text: str) -> str:
    """Return the address of another machine."""
    host, slash, _ = text.partition("/")
    if slash and literal(host) is not None:
        raise ValueError(f"{shown(text)} has a prefix length: `{host}` alone")
    return router_address(text)


def gateway(text: str) -> str:
    """Return the address of a gateway; a prefix length behind it is ignored."""
    host = text.partition("/")[0]
    if literal(host) is None:
        raise ValueError(f"must be an address such as `10.0.0.1`, not {shown(text)}")
    return router_address(host)


def node(text: str) -> tuple[str, str]:
    """Return the name and the address of a load balancer."""
    name, equals, address = text.partition("=")
    if not equals:
        raise ValueError(f"must be a host name and its address, `lb-1=10.0.0.11`, not {shown(text)}")
    return host_name(name), host_address(address)


def priority(text: str) -> int:
    """Return a VRRP priority."""
    if text.isascii() and text.isdecimal() and len(text) <= 3 and 1 <= int(text) <= 254:
        return int(text)
    raise ValueError(f"must be a number from 1 to 254, not {shown(text)}")


def _without_port(text: str) -> str:
    host, colon, port = text.rpartition(":")
    return host.strip("[]") if colon and port.isdecimal() and literal(text) is None else text


def _refuse_unreachable(written: str) -> None:
    """Refuse an address that no other machine can reach; `written` may have a prefix length."""
    found = ip_interface(written)
    if found.is_loopback or any(found.version == 4 and found in each for each in _UNREACHABLE):
        raise ValueError(f"`{written}` is no address at which another machine finds this one")
    if "/" in written and found.network.prefixlen < _SHORTEST[found.version]:
        raise ValueError(f"`{written}` would have half the world in its own network: is the length right?")
    if is_broadcast(found.ip, found.network):
        raise ValueError(f"`{written}` is the broadcast address of its network")


def is_broadcast(address: Address, network: IPv4Network | IPv6Network) -> bool:
    """Return whether it is the broadcast address; a network of two has none (RFC 3021)."""
    return network.version == 4 and network.prefixlen < 31 and address == network.broadcast_address


def is_network(address: Address, network: IPv4Network | IPv6Network) -> bool:
    """Return whether it is the address of the network itself, which no host may have."""
    return network.version == 4 and network.prefixlen < 31 and address == network.network_address


def _usual(address: str) -> int:
    return 64 if ":" in address else 24


def _prefix_length(netmask: str) -> int:
    """Return how many leading ones an IPv4 netmask has; raises ValueError if others follow a zero."""
    mask = literal(netmask)
    bits = f"{int(mask or 0):032b}"
    if mask is None or mask.version != 4 or "01" in bits:
        raise ValueError(f"{shown(netmask)} is not a netmask: such as `255.255.255.0`, or 24")
    return bits.count("1")
