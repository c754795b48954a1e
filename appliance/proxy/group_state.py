"""The state that the parts of a group's master share: configuration, generations, listening sockets."""

from dataclasses import dataclass

from gevent.event import Event
from gevent.lock import RLock
from structlog.typing import FilteringBoundLogger

from appliance.core.rollout.rollout import Rollout
from appliance.core.rollout.states import GenerationState
from appliance.core.rollout.timing import DrainSettings, Timing
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.events.event_board import EventBoard
from appliance.net.files.program_failures import ProgramFailure
from appliance.net.listening.bind_addresses import Address
from appliance.net.listening.listener_lending import OtherGroups
from appliance.net.listening.listeners import Listeners

ListeningFrontends = tuple[tuple[str, Address], ...]
"""The frontends of a generation, with the addresses at which they listen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSnapshot:
    """A snapshot that is prepared but not committed.

    It has a `generation` of its own, or None if the running workers apply it or the group is gone from it.
    `fresh` are the sockets bound for it, and `borrowed` is whether other groups lent some. `changed` is False
    if it has nothing new for this group.
    """

    snapshot: Snapshot
    generation: int | None = None
    fresh: frozenset[Address] = frozenset()
    changed: bool = True
    borrowed: bool = False


class GroupState:
    """The state of one group's master.

    `current` is the committed snapshot, None before the first. `failure` is why it does not run as it should.
    `stopping`: the program ends; `closing`: with the whole appliance, so that no socket is kept for another
    group; `retired`: it no longer serves anything; `broken`: a bug ended a part of it.
    `changed` is set after every event that a waiter for the end may need. Prepare, commit and take-over need
    the `lock`: each gives way to other greenlets while it waits for workers.
    """

    def __init__(self, paths: Paths, group: str, *, timing: Timing, logger: FilteringBoundLogger) -> None:
        self.paths = paths
        self.group = group
        self.program = f"proxy-{group}"
        self.log = logger
        self.timing = timing
        self.publish = EventBoard(paths.event_board(self.program), self.program)
        self.rollout = Rollout(drain_settings=DrainSettings(drain=120.0, max_draining=10), timing=timing)
        self.other_groups = OtherGroups(paths, self.program)
        self.listeners = Listeners(self.other_groups.lend)
        self.frontends: dict[int, ListeningFrontends] = {}
        self.current: Snapshot | None = None
        self.pending: PreparedSnapshot | None = None
        self.failure: ProgramFailure | None = None
        self.stopping = False
        self.closing = False
        self.retired = False
        self.broken = False
        self.changed = Event()
        self.lock = RLock()

    def addresses_in_use(self) -> set[Address]:
        """Return the addresses at which generations listen that do not drain."""
        return {
            address
            for number, frontends in self.frontends.items()
            if number in self.rollout.generations
            and self.rollout.generations[number].state is not GenerationState.DRAINING
            for _, address in frontends
        }


def drain_settings(snapshot: Snapshot) -> DrainSettings:
    """Return the drain settings of a snapshot."""
    return DrainSettings(drain=snapshot.drain, max_draining=snapshot.reload.max_draining)
