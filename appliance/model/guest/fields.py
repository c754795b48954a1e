"""The values of single guest properties: each function returns what a text means, or raises ValueError.

A message says what would be right; of lists every wrong part is told.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from appliance.model.addresses import dns_name, literal, server_host
from appliance.model.router_words import router_address, virtual_address
from appliance.model.units import shown

T = TypeVar("T")

_SEPARATORS: Final = re.compile(r"[,;\s]+")
_LONGEST_HOST_NAME: Final = 64  # HOST_NAME_MAX of Linux
_KEY_TYPES: Final = (
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)
_ANY_TYPE: Final = "|".join(map(re.escape, _KEY_TYPES))
_KEY: Final = re.compile(
    rf"(?P<options>[^\x00-\x1f]*[ \t])?(?P<type>{_ANY_TYPE})[ \t]+(?P<blob>[A-Za-z0-9+/]+={{0,2}})"
    r"(?P<comment>[ \t][^\x00-\x1f]*)?"
)
# A comma stands between keys, but also inside options and comments: only before a type it separates.
_BETWEEN_KEYS: Final = re.compile(rf"[\r\n]+|[,;]\s*(?=(?:{_ANY_TYPE})\s)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts(Generic[T]):
    """The parts of a list that are right, and a message for each that is not."""

    right: tuple[T, ...]
    wrong: tuple[str, ...]


def parts(text: str, read: Callable[[str], T]) -> Parts[T]:
    """Read a list with commas, semicolons or white space between its parts; the same part counts once."""
    return _read((each for each in _SEPARATORS.split(text) if each), read)


def ssh_keys(text: str) -> Parts[str]:
    """Read lines of authorized_keys, with commas or line breaks between them."""
    if "PRIVATE KEY" in text:
        message = (
            "is a private key, which belongs nowhere but on its own machine: the public one ends in .pub"
        )
        return Parts(right=(), wrong=(message,))
    lines = (each.strip() for each in _BETWEEN_KEYS.split(text))
    return _read((each for each in lines if each and not each.startswith("#")), ssh_key)


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


def ssh_key(line: str) -> str:
    """Return a line of authorized_keys (sshd(8)), if its key is what its type says."""
    found = _KEY.fullmatch(line)
    if found is None or re.search(rf"(?:{_ANY_TYPE})\s", found["options"] or ""):
        raise ValueError(f"{shown(line)} is not a public key such as `ssh-ed25519 AAAA... name`")
    if _named(found["blob"]) != found["type"]:
        raise ValueError(f"{shown(line)} is damaged: its middle part is no key of the type {found['type']}")
    return line


def _named(blob: str) -> str | None:
    """Return the type that a key's data begins with (RFC 4253 s.6.6), None where it is no base64."""
    try:
        data = base64.b64decode(blob, validate=True)
    except binascii.Error:
        return None
    size = int.from_bytes(data[:4])
    return data[4 : 4 + size].decode("latin-1") if len(data) > 4 + size else None


def _usual(address: str) -> int:
    return 64 if ":" in address else 24


def _prefix_length(netmask: str) -> int:
    """Return how many leading ones an IPv4 netmask has; raises ValueError where others follow a zero."""
    mask = literal(netmask)
    bits = f"{int(mask or 0):032b}"
    if mask is None or mask.version != 4 or "01" in bits:
        raise ValueError(f"{shown(netmask)} is not a netmask: such as `255.255.255.0`, or 24")
    return bits.count("1")


def _read(texts: Iterable[str], read: Callable[[str], T]) -> Parts[T]:
    right: dict[T, None] = {}
    wrong: list[str] = []
    for text in texts:
        try:
            right.setdefault(read(text))
        except ValueError as error:
            wrong.append(str(error))
    return Parts(right=tuple(right), wrong=tuple(wrong))
