"""From guest properties to the configuration of the appliance.

Nothing is raised: every problem names its property, and costs only what depends on it. A configuration is
given only where it passes the same loader as an operator's file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_interface
from typing import Final

from appliance.model.guest import cluster, shared
from appliance.model.guest.cluster import GuestCluster
from appliance.model.guest.machine import GuestMachine
from appliance.model.guest.packed_config import unpack
from appliance.model.guest.properties import BY_KEY, given, misspelt
from appliance.model.guest.reader import PropertyReader
from appliance.model.guest.rendering import render
from appliance.model.guest.report import GuestProblem
from appliance.model.messages.problems import Problem
from appliance.model.messages.quoting import shown
from appliance.model.snapshot.loading import Loaded, load
from appliance.model.snapshot.virtual_router import VirtualRouter

_CONFIG: Final = "config"

_Texts = tuple[bytes | None, bytes | None]
"""A configuration that is right, or one that is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestSettings:
    """The configuration that properties amount to, and all that is to be said about them.

    `yaml` is a configuration that is right, `refused` one that is not; both are None where none was given.
    """

    said: Mapping[str, str]
    yaml: bytes | None
    refused: bytes | None
    problems: tuple[GuestProblem, ...]
    notes: tuple[str, ...]


def begun(written: Mapping[str, str]) -> PropertyReader:
    """Return a reader of properties by their keys as they are written."""
    reader = PropertyReader(given(written))
    for message in misspelt(written):
        reader.warn(None, message)
    return reader


def guest_settings(
    reader: PropertyReader, of_machine: GuestMachine, *, interfaces: Sequence[str]
) -> GuestSettings:
    """Return what properties amount to, once the machine's own are read: those must not wait for the rest.

    `interfaces` are the machine's, as the kernel calls them; the first one carries virtual IPs.
    """
    if _CONFIG in reader.said:
        yaml, refused = _whole(reader, of_machine, interfaces)
    else:
        yaml, refused = _made(reader, of_machine, interfaces[0] if interfaces else None)
    return GuestSettings(
        said=reader.said,
        yaml=yaml,
        refused=refused,
        problems=tuple(sorted(reader.problems, key=_place)),
        notes=tuple(reader.notes),
    )


def _place(problem: GuestProblem) -> int:
    """Return where a problem's property stands in the form."""
    return list(BY_KEY).index(problem.key) if problem.key else len(BY_KEY)


def _whole(reader: PropertyReader, of_machine: GuestMachine, interfaces: Sequence[str]) -> _Texts:
    if cluster.is_given(reader.said):
        reader.notes.append("the property config is used, and nothing of the cluster section beside it")
    text = reader.one(_CONFIG, unpack)
    if text is None:
        return None, None
    loaded = load(text, source=_CONFIG, number=0)
    for each in loaded.snapshot.virtual_routers if loaded.snapshot else ():
        _look_at(reader, each, shared.taken(of_machine), interfaces)
    return _judged(reader, text, loaded, key=_CONFIG)


def _look_at(
    reader: PropertyReader, router: VirtualRouter, taken: Mapping[str, str], interfaces: Sequence[str]
) -> None:
    """Tell what an operator's own configuration can hardly mean on this machine; it is used all the same."""
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


def _made(reader: PropertyReader, of_machine: GuestMachine, interface: str | None) -> _Texts:
    if not cluster.is_given(reader.said):
        return None, None
    found = cluster.cluster(reader, of=of_machine, interface=interface)
    if found is None:
        return None, None
    _tell(reader, found)
    text = render(found).encode()
    return _judged(reader, text, load(text, source=_CONFIG, number=0), key=None)


def _tell(reader: PropertyReader, found: GuestCluster) -> None:
    for each in found.shared:
        key, alone = f"{each.role}_vip", f"/{ip_interface(each.address).max_prefixlen}"
        if found.networks and each.address.endswith(alone) and alone not in reader.said[key]:
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
