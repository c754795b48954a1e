"""Assembles the parts of one group's master, which the program `proxy` starts, asks and ends."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance import __version__
from appliance.core.rollout.events import Adopt
from appliance.core.rollout.generations import Generation
from appliance.core.rollout.needs_generation import needs_generation
from appliance.core.rollout.timing import Timing
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot, SnapshotError
from appliance.net.control.control_client import ControlUnavailable
from appliance.net.control.control_server import Handler
from appliance.net.files import snapshots
from appliance.net.listening.bind_addresses import Address
from appliance.proxy.generation_numbers import GenerationNumbers
from appliance.proxy.group_state import GroupState, ListeningFrontends
from appliance.proxy.nursery import Nursery
from appliance.proxy.orphaned_workers import LivingWorker, SilentWorker, adopt_all, listeners_of
from appliance.proxy.rollout_driver import RolloutDriver
from appliance.proxy.transaction import Transaction
from appliance.wire.lines.control import AnswerProblem
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
    bound = {(each.frontend, each.host, each.port) for worker in living for each in worker.status.listeners}
    for worker in silent:
        bound |= {(each.frontend, each.host, each.port) for each in worker.orders.listeners}
    return tuple((frontend, Address(host, port)) for frontend, host, port in sorted(bound))


WORKER: Final = ("-m", "appliance.programs.worker")
"""The part of a worker's command line after the interpreter."""


class ProxyMaster:
    """Generations of workers for one group. Nothing is served before `take_over` and `start`."""

    def __init__(
        self,
        paths: Paths,
        group: str,
        *,
        numbers: GenerationNumbers,
        logger: FilteringBoundLogger,
        module: Sequence[str] = WORKER,
        nursery: Nursery | None = None,
        timing: Timing | None = None,
    ) -> None:
        self.state = GroupState(paths, group, timing=timing or Timing(), logger=logger)
        driver = RolloutDriver(self.state, module=module, nursery=nursery)
        self.workers = driver.workers
        self._adoption = Adoption(self.state, driver, numbers)
        self._transaction = Transaction(self.state, driver, numbers)
        self.commands: Mapping[str, Handler] = {
            "prepare": self._transaction.prepare,
            "commit": self._transaction.commit,
            "abort": self._transaction.abort,
            "lend": driver.moved_binds.lend,
            "taken": driver.moved_binds.taken,
        }

    def take_over(self) -> bool:
        """Adopt the workers that a dead master left; return whether one accepts."""
        return self._adoption.take_over()

    def start(self, snapshot: Snapshot) -> tuple[AnswerProblem, ...]:
        """Run a snapshot that was accepted before; return the problems, none if it runs.

        Adopted workers continue as its generation if they were started for it, or for one that differs only
        in settings that running workers can apply. If a reload has already prepared a newer snapshot, it
        keeps its turn.
        """
        state = self.state
        with state.lock:
            if state.current is not None:
                return ()
            if state.pending is not None:
                return (AnswerProblem(message=f"snapshot {state.pending.snapshot.number} is being prepared"),)
            if (generation := state.rollout.accepting) and self._adoption.can_resume(generation, snapshot):
                self._transaction.resume(generation.number, snapshot)
                return ()
            answer = self._transaction.begin(snapshot)
            return answer.errors or self._transaction.commit_pending().errors

    def retire(self, *, within: float) -> None:
        """Stop serving: every generation drains within `within` seconds, and nothing listens."""
        self._transaction.retire(within=within)

    def give_up_pending(self) -> None:
        """Forget what was prepared, now, even without the lock: the program ends."""
        self._transaction.drop()
