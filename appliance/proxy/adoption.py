"""Takes over workers whose master is gone, with their listening sockets, for the next master."""

import os
from collections.abc import Iterable

from appliance import __version__
from appliance.core.rollout.events import Adopt
from appliance.core.rollout.generations import Generation
from appliance.core.rollout.needs_generation import needs_generation
from appliance.model.snapshot.snapshot import Snapshot, SnapshotError
from appliance.net.control.control_client import ControlUnavailable
from appliance.net.files import snapshots
from appliance.net.listening.bind_addresses import Address
from appliance.proxy.generation_numbers import GenerationNumbers
from appliance.proxy.group_state import GroupState, ListeningFrontends
from appliance.proxy.orphaned_workers import LivingWorker, SilentWorker, adopt_all, listeners_of
from appliance.proxy.rollout_driver import RolloutDriver
from appliance.wire.lines.succession import FORMER_INSTANCE


class Adoption:
    """The remains of an earlier master, as a new one finds them."""

    def __init__(self, state: GroupState, driver: RolloutDriver, numbers: GenerationNumbers) -> None:
        self._state = state
        self._driver = driver
        self._numbers = numbers
        self._versions: dict[int, set[str]] = {}
        self._instances: dict[int, set[str]] = {}

    def take_over(self) -> bool:
        """Adopt the workers that a dead master left, with their listeners; return whether one accepts.

        Holds the lock: until it returns, addresses that we are about to hold are in use by our own workers.
        """
        with self._state.lock:
            living, silent = adopt_all(self._state.paths, self._state.program)
            for each in living:
                self._receive_listeners(each)
            places = {each.worker for each in living} | {each.worker for each in silent}
            for generation in sorted({each.generation for each in places}):
                self._adopt(
                    generation,
                    [each for each in living if each.worker.generation == generation],
                    [each for each in silent if each.worker.generation == generation],
                )
            return self._state.rollout.accepting is not None

    def can_resume(self, generation: Generation, snapshot: Snapshot) -> bool:
        """Return whether an adopted generation can serve as the generation of a snapshot.

        A new version of the appliance needs new processes. So does an appliance that has taken over: the
        former one's workers may end with its container. And the process that replaces a dead worker needs all
        their listeners.
        """
        state = self._state
        held = set(state.listeners)
        return (
            snapshot.group(state.group) is not None
            and self._versions[generation.number] == {__version__}
            and os.environ.get(FORMER_INSTANCE) not in self._instances[generation.number] - {""}
            and all(address in held for _, address in state.frontends[generation.number])
            and all(self._can_apply(each.applied, snapshot) for each in generation.workers.values())
        )

    def _receive_listeners(self, living: LivingWorker) -> None:
        """Own the listening sockets of a worker: it sends its descriptors (SCM_RIGHTS, unix(7)).

        A received descriptor is the same open socket, with the same accept queue. All workers of a generation
        share theirs, so workers after the first add nothing new. A draining worker sends those on which it
        accepts until another group's program does: that program borrows them from us.
        """
        try:
            self._state.listeners.take_over(listeners_of(living))
        except ControlUnavailable as error:
            self._state.log.warning("listeners-not-received", reason=str(error))

    def _adopt(self, generation: int, living: list[LivingWorker], silent: list[SilentWorker]) -> None:
        log, workers = self._state.log, self._driver.workers
        for each in living:
            workers.adopt(each)
        for hanging in silent:
            place = {"generation": generation, "worker": hanging.worker.index}
            log.warning("worker-silent", **place, pid=hanging.pid, phase=hanging.state)
            workers.adopt_silent(hanging)
        self._numbers.seen(generation)
        self._state.frontends[generation] = _frontends_of(living, silent)
        self._versions[generation] = {each.status.version for each in living}
        self._instances[generation] = {each.status.instance for each in living}
        log.warning("generation-adopted", generation=generation, workers=len(living), silent=len(silent))
        size = max((*(each.status.workers for each in living), *(each.orders.workers for each in silent)))
        orphans = (*(each.orphan for each in living), *(each.orphan for each in silent))
        self._driver.handle(Adopt(generation=generation, workers=size, orphans=orphans))

    def _can_apply(self, applied: int, snapshot: Snapshot) -> bool:
        """Return whether a worker with the snapshot of that number can continue with another one."""
        if applied == snapshot.number:
            return True
        try:
            before = snapshots.read(self._state.paths.snapshot(applied))
        except SnapshotError:
            return False
        return before is not None and not needs_generation(
            before=before, after=snapshot, group=self._state.group
        )


def _frontends_of(living: Iterable[LivingWorker], silent: Iterable[SilentWorker]) -> ListeningFrontends:
    told = {(each.frontend, each.host, each.port) for worker in living for each in worker.status.listeners}
    for worker in silent:
        told |= {(each.frontend, each.host, each.port) for each in worker.orders.listeners}
    return tuple((frontend, Address(host, port)) for frontend, host, port in sorted(told))
