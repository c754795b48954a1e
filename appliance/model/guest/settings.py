"""From guest properties to the configuration of the appliance.

Nothing is raised: every problem names its property, and costs only what depends on it. A configuration is
given only where it passes the same loader as an operator's file: half of one would take away what an
earlier one served.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_interface
from typing import Final

from appliance.model.guest import cluster
from appliance.model.guest.cluster import Cluster
from appliance.model.guest.config import unpack
from appliance.model.guest.machine import Machine
from appliance.model.guest.properties import BY_KEY, given, misspelt
from appliance.model.guest.reader import Reader
from appliance.model.guest.report import GuestProblem
from appliance.model.guest.yaml import render
from appliance.model.problems import Problem
from appliance.model.resolve import Loaded, load

_CONFIG: Final = "config"


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


def begun(written: Mapping[str, str]) -> Reader:
    """Return a reader of properties by their keys as they are written."""
    reader = Reader(given(written))
    reader.notes += [_unknown(name, meant) for name, meant in misspelt(written)]
    return reader


def guest_settings(reader: Reader, of_machine: Machine, *, interface: str | None) -> GuestSettings:
    """Return what properties amount to, once the machine's own are read: those must not wait for the rest.

    `interface` is what the kernel calls the machine's network interface, None where it has none.
    """
    if _CONFIG in reader.said:
        yaml, refused = _whole(reader)
    else:
        yaml, refused = _made(reader, of_machine, interface)
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


def _unknown(name: str, meant: str | None) -> str:
    return f"there is no property `{name}`" + (f": did you mean `{meant}`?" if meant else "")


def _whole(reader: Reader) -> tuple[bytes | None, bytes | None]:
    if cluster.is_given(reader.said):
        reader.notes.append("the property config is used, and nothing of the cluster section beside it")
    text = reader.one(_CONFIG, unpack)
    return (None, None) if text is None else _judged(reader, text, key=_CONFIG)


def _made(reader: Reader, of_machine: Machine, interface: str | None) -> tuple[bytes | None, bytes | None]:
    if not cluster.is_given(reader.said):
        return None, None
    found = cluster.cluster(reader, addresses=of_machine.addresses, interface=interface)
    if any(each.key == "address" for each in reader.problems):
        reader.notes.append(
            "no configuration is made of the cluster section: networks and virtual IPs depend on the address"
        )
        return None, None
    if found is None:
        return None, None
    _tell(reader, found)
    return _judged(reader, render(found).encode(), key=None)


def _tell(reader: Reader, found: Cluster) -> None:
    for each in found.shared:
        if found.networks and ip_interface(each.address).network.prefixlen == _widest(each.address):
            reader.notes.append(
                f"the virtual IP {each.address} is in none of this machine's own networks: is that meant?"
            )
    if found.masters and not found.networks:
        reader.notes.append(
            "port 22623 (machine-config) is left out: with DHCP it is not known which networks may use it. "
            "Give the machine an address, or edit the configuration"
        )


def _widest(address: str) -> int:
    return ip_interface(address).max_prefixlen


def _judged(reader: Reader, text: bytes, *, key: str | None) -> tuple[bytes | None, bytes | None]:
    loaded: Loaded = load(text, source=_CONFIG, number=0)
    reader.problems += [_located(each, key) for each in loaded.errors]
    reader.notes += [f"configuration: {_located(each, None)}" for each in loaded.warnings]
    return (text, None) if loaded.snapshot is not None else (None, text)


def _located(problem: Problem, key: str | None) -> GuestProblem:
    path = f"{problem.path}: " if problem.path else ""
    return GuestProblem(key=key, message=f"{path}{problem.message}", line=problem.line, column=problem.column)
