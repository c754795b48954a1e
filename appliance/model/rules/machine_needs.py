"""What a configuration needs of the machine, each with its path: interfaces and commands, and nftables."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from appliance.model.messages.problems import Path
from appliance.model.snapshot.shared_ip import SharedIp
from appliance.model.snapshot.snapshot import NotifyTarget, Snapshot
from appliance.model.snapshot.virtual_router import Track, TrackKind, VirtualRouter


class MachineNeedKind(Enum):
    """What must exist: an interface of that name, or an executable file."""

    INTERFACE = "interface"
    COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineNeed:
    """One thing that must exist on the machine; `path` leads to the key that names it."""

    path: Path
    kind: MachineNeedKind
    name: str


def needs(routers: Iterable[VirtualRouter]) -> Iterator[MachineNeed]:
    """Yield what these routers need, in the order of the routers and of their keys."""
    for router in routers:
        at: Path = ("virtual_ips", router.name)
        yield MachineNeed(path=(*at, "interface"), kind=MachineNeedKind.INTERFACE, name=router.interface)
        for each in router.other_interfaces:
            if each != router.interface:
                yield MachineNeed(path=(*at, "addresses"), kind=MachineNeedKind.INTERFACE, name=each)
        for each in dict.fromkeys(route.interface for route in router.routes if route.interface):
            if each != router.interface:
                yield MachineNeed(path=(*at, "routes"), kind=MachineNeedKind.INTERFACE, name=each)
        yield from _of_tracks(router.track, at)
        yield from _of_notify(router, at)


def shared_needs(shared: Iterable[SharedIp]) -> Iterator[MachineNeed]:
    """Yield the commands of the tracks of shared addresses."""
    for each in shared:
        yield from _of_tracks(each.track, ("shared_ips", each.name))


def _of_tracks(tracks: Iterable[Track], at: Path) -> Iterator[MachineNeed]:
    kinds = {TrackKind.INTERFACE: MachineNeedKind.INTERFACE, TrackKind.SCRIPT: MachineNeedKind.COMMAND}
    for track in tracks:
        if track.kind in kinds:
            place = (*at, "track", track.name, track.kind.value)
            yield MachineNeed(path=place, kind=kinds[track.kind], name=track.target)


def _of_notify(router: VirtualRouter, at: Path) -> Iterator[MachineNeed]:
    for event in ("active", "backup", "fault", "stop", "any"):
        words: tuple[str, ...] = getattr(router.notify, event)
        if words:
            yield MachineNeed(path=(*at, "notify", event), kind=MachineNeedKind.COMMAND, name=words[0])


def notify_needs(targets: Iterable[NotifyTarget]) -> Iterator[MachineNeed]:
    """Yield the commands that are notified of events."""
    for target in targets:
        if target.command:
            place = ("notify", target.name, "command")
            yield MachineNeed(path=place, kind=MachineNeedKind.COMMAND, name=target.command[0])


def notify_files(targets: Iterable[NotifyTarget]) -> Iterator[tuple[Path, str]]:
    """Yield the files and sockets of notified targets, each with the path of its key."""
    for target in targets:
        for key in ("webhook_file", "token_file", "syslog", "ca"):
            name: str = getattr(target, key) or ""
            if name.startswith("/"):
                yield ("notify", target.name, key), name


def nftables_paths(snapshot: Snapshot) -> tuple[Path, ...]:
    """Return the paths of keys that need nftables: all redirects, and `linger`."""
    linger: tuple[Path, ...] = (("linger",),) if snapshot.linger else ()
    redirects = tuple(
        (group.name, "frontends", each.name, "redirect")
        for group in snapshot.groups
        for each in group.frontends
        if each.redirect
    )
    return (*redirects, *linger)
