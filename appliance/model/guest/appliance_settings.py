"""From guest properties to the configuration of the appliance.

Nothing is raised: every problem names its property, and costs only what depends on it. A configuration is
used only if it passes the same loader as an operator's file.
"""

import base64
import binascii
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_interface
from typing import Final

from appliance.model.guest import cluster, virtual_ips
from appliance.model.guest.cluster import GuestCluster
from appliance.model.guest.machine_settings import GuestMachine
from appliance.model.guest.networks import Role
from appliance.model.guest.properties import BY_KEY, given_properties, misspelt
from appliance.model.guest.reader import PropertyReader
from appliance.model.guest.rendering import render
from appliance.model.guest.report import GuestProblem
from appliance.model.loading.loading import Loaded, load
from appliance.model.messages.problems import Problem
from appliance.model.messages.quoting import shown
from appliance.model.snapshot.virtual_router import VirtualRouter

LIMIT: Final = 1 << 20
"""Most bytes of a configuration; a gzip of 65,535 characters could hold fifty times as much."""

_GZIP: Final = b"\x1f\x8b"
_NEITHER: Final = "is neither YAML nor base64 of one: `base64 -w0 appliance.yaml` makes what belongs here"
_TWICE: Final = "is base64 of no YAML: was it encoded twice?"
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_\s-]{16,}={0,2}\s*")
_DATA_URL: Final = re.compile(r"data:[^,]{0,100};base64,")
_UTF_16: Final = "is UTF-16: save the file as UTF-8"
_COMPRESSED: Final = "is compressed, and not by gzip: `gzip -9 <appliance.yaml | base64 -w0`"
_OTHERS: Final = {
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
    b"\xfd7zXZ\0": _COMPRESSED,
    b"\x28\xb5\x2f\xfd": _COMPRESSED,  # zstd
    b"BZh": _COMPRESSED,
    b"PK\3\4": _COMPRESSED,
}
_URL_SAFE: Final = str.maketrans("-_", "+/")


def unpack(text: str) -> bytes:
    """Return the configuration; raises ValueError."""
    url = _DATA_URL.match(text)
    if ":" in text and url is None:  # every YAML with content has one, and base64 never
        if text.startswith("#") and "\n" not in text:
            raise ValueError("has lost its line breaks, and is all comment so: give it in base64")
        return text.encode(errors="surrogatepass")
    data = _decoded("".join(text[url.end() if url else 0 :].split()))
    plain = _inflated(data) if data.startswith(_GZIP) else data
    for beginning, message in _OTHERS.items():
        if plain.startswith(beginning):
            raise ValueError(message)
    if b":" not in plain:
        raise ValueError(_TWICE if _BASE64.fullmatch(plain) else _NEITHER)
    return plain


def _decoded(text: str) -> bytes:
    padded = text.rstrip("=").translate(_URL_SAFE)
    padded += "=" * (-len(padded) % 4)
    try:
        return base64.b64decode(padded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(_NEITHER) from error


def _inflated(data: bytes) -> bytes:
    stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        plain = stream.decompress(data, LIMIT)
    except zlib.error as error:
        raise ValueError(f"begins as gzip and is damaged: {error}") from error
    if stream.unconsumed_tail:
        raise ValueError(f"holds more than {LIMIT} bytes")
    if not stream.eof:
        raise ValueError("ends in the middle of its gzip: was it cut off at the end?")
    return plain


_CONFIG: Final = "config"

_Texts = tuple[bytes | None, bytes | None]
"""A configuration that is right, or one that is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestSettings:
    """The configuration, accepted (`yaml`), `refused` or neither, with its problems and notes."""

    given: Mapping[str, str]
    yaml: bytes | None
    refused: bytes | None
    problems: tuple[GuestProblem, ...]
    notes: tuple[str, ...]


def property_reader(written: Mapping[str, str]) -> PropertyReader:
    """Return a reader of the properties, by their keys as written; unknown keys are its first problems."""
    reader = PropertyReader(given_properties(written))
    for message in misspelt(written):
        reader.warn(None, message)
    return reader


def guest_settings(
    reader: PropertyReader,
    of_machine: GuestMachine,
    *,
    interfaces: Sequence[str],
    of_networks: Mapping[Role, str],
) -> GuestSettings:
    """Return the configuration from the properties.

    The machine's own properties have been read before. `interfaces` are the machine's, by their names in the
    kernel, `of_networks` those of its networks.
    """
    if _CONFIG in reader.given:
        yaml, refused = _whole(reader, of_machine, interfaces)
    else:
        yaml, refused = _made(reader, of_machine, of_networks)
    return GuestSettings(
        given=reader.given,
        yaml=yaml,
        refused=refused,
        problems=tuple(sorted(reader.problems, key=_position)),
        notes=tuple(reader.notes),
    )


def _position(problem: GuestProblem) -> int:
    """Return the position of a problem's property in the form."""
    return list(BY_KEY).index(problem.key) if problem.key else len(BY_KEY)


def _whole(reader: PropertyReader, of_machine: GuestMachine, interfaces: Sequence[str]) -> _Texts:
    if cluster.is_given(reader.given):
        reader.notes.append("the property config is used, and nothing of the cluster section beside it")
    if "page_password" in reader.given:
        reader.warn(
            "page_password", "means nothing beside `config`, whose section `stats` has the page's password"
        )
    text = reader.one(_CONFIG, unpack)
    if text is None:
        return None, None
    loaded = load(text, source=_CONFIG, number=0, node=of_machine.host_name)
    for each in loaded.snapshot.virtual_routers if loaded.snapshot else ():
        _warn_of_machine(reader, each, virtual_ips.taken(of_machine), interfaces)
    return _judged(reader, text, loaded, key=_CONFIG)


def _warn_of_machine(
    reader: PropertyReader, router: VirtualRouter, taken: Mapping[str, str], interfaces: Sequence[str]
) -> None:
    """Warn of addresses and interfaces that do not match this machine; the configuration is used anyway."""
    for address in (each.partition("/")[0] for each in router.addresses):
        if address in taken:
            message = f"virtual_ips.{router.name}: `{address}` is {taken[address]} already"
            reader.warn(_CONFIG, message)
    if router.interface not in interfaces:
        known = ", ".join(interfaces) or "none"
        message = (
            f"virtual_ips.{router.name}: there is no interface {shown(router.interface)} here, but {known}"
        )
        reader.warn(_CONFIG, message)


def _made(reader: PropertyReader, of_machine: GuestMachine, interfaces: Mapping[Role, str]) -> _Texts:
    if not cluster.is_given(reader.given):
        return None, None
    found = cluster.cluster(reader, of=of_machine, interfaces=interfaces)
    if found is None:
        return None, None
    _warn(reader, found)
    text = render(found).encode()
    return _judged(reader, text, load(text, source=_CONFIG, number=0, node=of_machine.host_name), key=None)


def _warn(reader: PropertyReader, found: GuestCluster) -> None:
    for each in found.virtual_ips:
        key, alone = f"{each.role}_vip", f"/{ip_interface(each.address).max_prefixlen}"
        if found.networks and each.address.endswith(alone) and alone not in reader.given[key]:
            message = (
                f"`{each.address.removesuffix(alone)}` is in none of this machine's own networks. Where that "
                "is meant, write it with the prefix length of its network"
            )
            reader.warn(key, message)
    if found.masters and not found.networks:
        reader.notes.append(
            "port 22623 (machine-config) is left out: with DHCP it is not known which networks may use it. "
            "Give the machine an address, or edit the configuration"
        )


def _judged(reader: PropertyReader, text: bytes, loaded: Loaded, *, key: str | None) -> _Texts:
    reader.problems += [_located(each, key) for each in loaded.errors]
    reader.notes += [f"configuration: {_located(each, None)}" for each in loaded.warnings]
    return (text, None) if loaded.snapshot is not None else (None, text)


def _located(problem: Problem, key: str | None) -> GuestProblem:
    path = f"{problem.path}: " if problem.path else ""
    return GuestProblem(key=key, message=f"{path}{problem.message}", line=problem.line, column=problem.column)
