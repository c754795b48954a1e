"""Assembles the parts of one group's master, which the program `proxy` starts, asks and ends."""

from collections.abc import Mapping, Sequence
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.core.rollout.timing import Timing
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.control.control_server import Handler
from appliance.proxy.adoption import Adoption
from appliance.proxy.generation_numbers import GenerationNumbers
from appliance.proxy.group_state import GroupState
from appliance.proxy.nursery import Nursery
from appliance.proxy.rollout_driver import RolloutDriver
from appliance.proxy.transaction import Transaction
from appliance.wire.lines.control import AnswerProblem

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
