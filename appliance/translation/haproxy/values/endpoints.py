"""Addresses with ports, as `bind` and `server` have them (configuration.txt, bind and server).

The port follows the last colon; an IPv6 address needs no brackets. `*` and nothing mean every IPv4 address,
`::` every IPv6 address and, by Linux's default, every IPv4 address too.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from appliance.model.config.values.addresses import Endpoint, endpoint, host, literal
from appliance.model.messages.quoting import shown

MOST_PORTS: Final = 1024
"""Ports of one range: each is a listening socket in every worker."""

ANY_IPV4: Final = "0.0.0.0"  # noqa: S104  # written to a configuration, not bound
ANY_IPV6: Final = "::"

_FAMILY: Final = re.compile(r"ipv([46])@")
_PREFIX: Final = re.compile(r"([a-z0-9]+)@")
_RANGE: Final = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", re.ASCII)
_OFFSET: Final = re.compile(r"[+-][0-9]{1,5}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTarget:
    """A server's address, "" for none; `port` None is the client's destination port, plus `offset`."""

    host: str
    port: int | None
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listened:
    """An address to listen on, with one port or several."""

    host: str
    ports: range

    def endpoints(self) -> Iterator[Endpoint]:
        """Yield each of them in our form."""
        return (Endpoint(host=self.host, port=port) for port in self.ports)


def binds(text: str) -> tuple[Listened, ...]:
    """Return the addresses of the first word after `bind`; raises ValueError."""
    found = tuple(_bind(part) for part in text.split(",") if part)
    if not found:
        raise ValueError("the line names no address")
    return found


def server_target(text: str) -> ServerTarget:
    """Return the address of a server; raises ValueError if our servers cannot have it."""
    rest = _without_family(text)
    address, colon, port = rest.rpartition(":")
    if not colon or rest.endswith("]"):
        return ServerTarget(host=_server_host(rest), port=None)
    if not port or _OFFSET.fullmatch(port):
        return ServerTarget(host=_server_host(address), port=None, offset=int(port or 0))
    return ServerTarget(host=_server_host(address), port=_port(port))


def _bind(text: str) -> Listened:
    rest = _without_family(text)
    address, colon, ports = rest.rpartition(":")
    match = _RANGE.fullmatch(ports)
    if not colon or match is None:
        raise ValueError(f"{shown(text)} has no port: write `ADDRESS:PORT`")
    low, high = _port(match[1]), _port(match[2] or match[1])
    if low > high:
        raise ValueError(f"{shown(ports)} is reversed: write `{high}-{low}`")
    if high - low >= MOST_PORTS:
        raise ValueError(f"{shown(ports)} has more than {MOST_PORTS} ports")
    bare = address.removeprefix("[").removesuffix("]")
    if bare in {"", "*"}:
        bare = ANY_IPV6 if text.startswith("ipv6@") else ANY_IPV4
    written = f"[{bare}]" if ":" in bare else bare
    return Listened(host=endpoint(f"{written}:{low}").host, ports=range(low, high + 1))


def _without_family(text: str) -> str:
    """Return an address without `ipv4@`; our keys have no form for sockets and descriptors."""
    if text.startswith("/"):
        raise ValueError(f"{shown(text)} is a Unix socket: write an address and a port")
    prefix = _PREFIX.match(text)
    if prefix and not _FAMILY.match(text):
        raise ValueError(f"{shown(text)}: `{prefix[1]}@` is not supported: write an address and a port")
    return text[prefix.end() :] if prefix else text


def _server_host(text: str) -> str:
    bare = text.removeprefix("[").removesuffix("]")
    address = literal(bare)
    if bare in {"", "*"} or (address is not None and address.is_unspecified):
        return ""
    return host(f"[{bare}]" if ":" in bare else bare)


def _port(text: str) -> int:
    if text.isascii() and text.isdecimal() and 1 <= int(text[:6]) <= 65535:
        return int(text)
    raise ValueError(f"{shown(text)} is not a port: 1 to 65535")
