"""What virtual routers need of the machine that they run on, each by its place in the operator's file."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from appliance.model.messages.problems import Path
from appliance.model.snapshot.virtual_router import TrackKind, VirtualRouter


class MachineNeedKind(Enum):
    """An interface of that name, or a command that can be run."""

    INTERFACE = "interface"
    COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineNeed:
    """One thing that has to be there; `path` is where the file asks for it."""

    path: Path
    kind: MachineNeedKind
    name: str


def needs(routers: Iterable[VirtualRouter]) -> Iterator[MachineNeed]:
    """Yield what these need, in the order in which they have it."""
    for router in routers:
        at: Path = ("virtual_ips", router.name)
        yield MachineNeed(path=(*at, "interface"), kind=MachineNeedKind.INTERFACE, name=router.interface)
        yield from _of_tracks(router, at)
        yield from _of_notify(router, at)


def _of_tracks(router: VirtualRouter, at: Path) -> Iterator[MachineNeed]:
    kinds = {TrackKind.INTERFACE: MachineNeedKind.INTERFACE, TrackKind.SCRIPT: MachineNeedKind.COMMAND}
    for track in router.track:
        if track.kind in kinds:
            place = (*at, "track", track.name, track.kind.value)
            yield MachineNeed(path=place, kind=kinds[track.kind], name=track.target)


def _of_notify(router: VirtualRouter, at: Path) -> Iterator[MachineNeed]:
    for event in ("active", "backup", "fault", "stop", "any"):
        words: tuple[str, ...] = getattr(router.notify, event)
        if words:
            yield MachineNeed(path=(*at, "notify", event), kind=MachineNeedKind.COMMAND, name=words[0])
