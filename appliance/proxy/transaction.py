"""Makes a snapshot real in two phases, so that all programs change to it or none: prepare, then commit.

Everything that can fail is in prepare: addresses are bound, workers are started and read their configuration,
or the running ones report whether they could apply it. Nothing changes for clients until then, and `abort`
leaves no trace. Commit lets ready workers accept, which nothing can refuse any more.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Final

from appliance.core.balancing.worker_shares import Shortage, shortage
from appliance.core.rollout.events import Abort, ApplyLive, Commit, Prepare, Resume, Retire
from appliance.core.rollout.generations import TrackedWorker
from appliance.core.rollout.needs_generation import needs_generation
from appliance.core.rollout.states import GenerationState
from appliance.core.rollout.timing import DrainSettings
from appliance.model.snapshot.frontends import Bind, Group
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.control.control_server import Call
from appliance.net.files import program_failures, snapshots
from appliance.net.files.program_failures import ProgramFailure
from appliance.net.listening.bind_addresses import Address
from appliance.net.listening.bind_refusals import BindProblem
from appliance.net.listening.listeners import ReservedBinds
from appliance.net.listening.removed_virtual_addresses import binds_without_address, removed_addresses
from appliance.net.logging import log
from appliance.net.process.limits import open_files, processors
from appliance.proxy.generation_numbers import GenerationNumbers
from appliance.proxy.group_state import GroupState, PreparedSnapshot, drain_settings
from appliance.proxy.moved_binds import LET_GO_TIMEOUT
from appliance.proxy.rollout_driver import GenerationOutcome, RolloutDriver
from appliance.wire.lines.control import Answer, AnswerProblem, bad, good

_ACCEPT_TIMEOUT: Final = 20.0  # seconds for a ready generation to report that it accepts
_APPLY_TIMEOUT: Final = 20.0  # seconds for workers to answer to a live change


class Transaction:
    """The changes of one group's configuration; the state's `pending` is the one that is under way."""

    def __init__(self, state: GroupState, driver: RolloutDriver, numbers: GenerationNumbers) -> None:
        self._state = state
        self._driver = driver
        self._workers = driver.workers
        self._binds = driver.moved_binds
        self._numbers = numbers
        self._shortage: Shortage | None = None
        self._waited_for: frozenset[int] = frozenset()  # generations that drain

    # Commands

    def prepare(self, call: Call) -> Answer:
        """Answer `prepare`: do everything that can fail for a snapshot, in place of an earlier one."""
        number = call.question.integer("snapshot")
        state = self._state
        with state.lock:
            if state.stopping:
                return bad(f"{state.program} is stopping")
            if state.pending and state.pending.snapshot.number == number:
                return _prepared(state.pending)
            self.drop()
            return self.begin(snapshots.proposed(state.paths, number))

    def commit(self, call: Call) -> Answer:
        """Answer `commit`: make the prepared snapshot real; returns when its generation accepts."""
        number = call.question.integer("snapshot")
        state = self._state
        with state.lock:
            if state.pending and state.pending.snapshot.number == number:
                return self.commit_pending()
            if state.current and state.current.number == number:
                return good(changed=False)
            return bad(f"snapshot {number} is not prepared")

    def abort(self, call: Call) -> Answer:
        """Answer `abort`: forget what was prepared, whichever snapshot it was."""
        call.question.integer("snapshot")
        with self._state.lock:
            self.drop()
        return good()

    # Prepare

    def begin(self, snapshot: Snapshot) -> Answer:
        """Prepare a snapshot; return every reason why that cannot be done."""
        state = self._state
        group = snapshot.group(state.group)
        if group is None:
            return self._hold(PreparedSnapshot(snapshot=snapshot, changed=not state.retired))
        binds = tuple(dict.fromkeys(bind for frontend in group.frontends for bind in frontend.binds))
        removed = removed_addresses(state.current, snapshot, state.paths)
        if removed and (problems := binds_without_address(binds, removed)):
            return bad(*_bind_problems(group, problems))
        if state.current and not needs_generation(before=state.current, after=snapshot, group=state.group):
            return self._begin_live(state.current, snapshot)
        return self._begin_generation(snapshot, group, binds)

    def _begin_generation(self, snapshot: Snapshot, group: Group, binds: Sequence[Bind]) -> Answer:
        """Bind new addresses and start workers, once earlier generations have handed their sessions over."""
        state = self._state
        self._wait_for_moves()
        if state.stopping:
            return bad(f"{state.program} is stopping")
        workers = group.workers or processors()
        reserved = state.listeners.reserve(binds, virtual=snapshot.virtual_addresses, workers=workers)
        if not isinstance(reserved, ReservedBinds):
            return bad(*_bind_problems(group, reserved))
        for note in reserved.notes:
            state.log.warning("bind-degraded", bind=str(note.bind), reason=note.reason)
        try:
            generation = self._numbers.next()
        except OSError as error:
            state.listeners.give_up(reserved.fresh)
            why = f"the number of a generation cannot be written: {error.strerror}"
            return bad(f"{state.program}: {why}")
        return self._start(generation, snapshot, group, reserved)

    def _wait_for_moves(self) -> None:
        """Wait for the generations that hand their sessions over, so that they never pile up.

        Reloads that come faster than that wait for each other. Each generation is waited for once: the
        sessions that it still has then have no place in a newer one, and may stay as long as the drain lasts.
        """
        state = self._state
        if state.current is None or state.current.reload.sessions != "move":
            return
        generations = state.rollout.generations.values()
        draining = frozenset(each.number for each in generations if each.state is GenerationState.DRAINING)
        self._workers.wait_gone(draining - self._waited_for, timeout=state.timing.move)
        self._waited_for = draining

    def _begin_live(self, before: Snapshot, snapshot: Snapshot) -> Answer:
        """Have the workers report whether they could apply it, while nothing has changed yet."""
        serving = self._state.rollout.serving
        reasons = self._workers.check(snapshot.number, serving, timeout=_APPLY_TIMEOUT)
        if reasons:
            return bad(*(f"worker {each.generation}.{each.index}: {why}" for each, why in reasons.items()))
        return self._hold(PreparedSnapshot(snapshot=snapshot, changed=not snapshots.same(before, snapshot)))

    def _start(self, generation: int, snapshot: Snapshot, group: Group, reserved: ReservedBinds) -> Answer:
        """Start the workers of a new generation, and wait until they are ready or one has failed."""
        state = self._state
        state.frontends[generation] = tuple(_listening_frontends(group, reserved))
        outcome = self._driver.outcomes[generation] = GenerationOutcome()
        workers = group.workers or processors()
        self._check_open_files(group, workers)
        state.log.info(
            "generation-started", generation=generation, configuration=snapshot.number, workers=workers
        )
        pending = PreparedSnapshot(
            snapshot=snapshot,
            generation=generation,
            fresh=reserved.fresh,
            borrowed=state.listeners.borrowed_last,
        )
        state.pending = pending
        self._driver.handle(Prepare(generation=generation, snapshot=snapshot.number, workers=workers))
        reason = outcome.ready.get()  # the rollout bounds it: ready or failed within its startup time
        if reason is None:
            return _prepared(pending)
        if state.pending is pending:
            self.drop()
        failed = f"{state.program}: generation {generation}: {reason}"
        return bad(AnswerProblem(message=failed, path=group.name))

    def _check_open_files(self, group: Group, workers: int) -> None:
        """Log if files allow fewer sessions than a reload wants; at the start `run` does that."""
        found = shortage(group, workers=workers, open_files=open_files())
        if found and found != self._shortage and self._state.current is not None:
            self._state.log.warning("open-files-low", workers=workers, **asdict(found))
        self._shortage = found

    def _hold(self, pending: PreparedSnapshot) -> Answer:
        self._state.pending = pending
        return _prepared(pending)

    # Commit

    def commit_pending(self) -> Answer:
        """Make the prepared snapshot real."""
        state = self._state
        pending, state.pending = state.pending, None
        if pending is None:
            return bad("nothing is prepared")
        try:
            state.listeners.open(pending.fresh)
        except OSError as error:
            state.pending = pending
            self.drop()
            return bad(f"{state.program}: what was bound cannot be listened on: {error.strerror}")
        if state.current is None or state.current.log != pending.snapshot.log:
            self._follow_log(pending.snapshot)
        state.current, state.failure = pending.snapshot, None
        program_failures.remove(state.paths, state.program)
        settings = drain_settings(pending.snapshot)
        if pending.snapshot.group(state.group) is None:
            self.retire(within=settings.drain)
            self._binds.wait_closed()
            return good(changed=pending.changed)
        if pending.generation is None:
            self._driver.handle(ApplyLive(snapshot=pending.snapshot.number, drain_settings=settings))
            problems = self._wait_applied()
            return bad(*problems) if problems else good(changed=pending.changed)
        answer = self._open(pending.generation, settings)
        if pending.borrowed:
            state.other_groups.taken(pending.snapshot.number)
        return answer

    def resume(self, generation: int, snapshot: Snapshot) -> None:
        """Continue with an adopted generation as that of the accepted snapshot."""
        state = self._state
        self._follow_log(snapshot)
        state.current = snapshot
        state.log.info("generation-resumed", generation=generation, configuration=snapshot.number)
        self._driver.handle(Resume(snapshot=snapshot.number, drain_settings=drain_settings(snapshot)))
        self._binds.close_unused()
        self._binds.keep_moving()
        self._wait_applied()

    def _open(self, generation: int, settings: DrainSettings) -> Answer:
        """Make a ready generation accept, and return when it does."""
        state = self._state
        state.retired = False
        accepting, held = self._driver.outcomes[generation].accepting, set(state.listeners)
        self._driver.handle(Commit(settings))
        if not accepting.wait(_ACCEPT_TIMEOUT):
            late = f"generation {generation} does not accept with all its workers yet"
            return bad(f"{state.program}: {late}")
        if held - set(state.listeners):
            self._binds.wait_closed()
        else:
            self._binds.keep_moving()
        return good(changed=True, generation=generation)

    def _wait_applied(self) -> tuple[AnswerProblem, ...]:
        """Wait until every worker has answered to a live change; return why some have not applied it."""
        rollout, deadline = self._state.rollout, time.monotonic() + _APPLY_TIMEOUT
        while any(not each.refusal for each in rollout.not_applied):
            self._driver.performed.clear()
            if not self._driver.performed.wait(max(0.0, deadline - time.monotonic())):
                break
        problems = tuple(map(self._problem_of, rollout.not_applied))
        if problems:
            self._state.failure = ProgramFailure(since=time.time(), problems=problems)
        return problems

    def _problem_of(self, worker: TrackedWorker) -> AnswerProblem:
        reason = worker.refusal or "it does not answer"
        place = f"worker {worker.id.generation}.{worker.id.index}"
        message = f"{self._state.program}: {place} continues with snapshot {worker.applied}: {reason}"
        return AnswerProblem(message=message)

    def _follow_log(self, snapshot: Snapshot) -> None:
        """Log at the level and in the form that a snapshot sets."""
        self._state.log = self._workers.log = log.obey(self._state.program, snapshot.log)

    # The end

    def retire(self, *, within: float) -> None:
        """Stop serving: every generation drains within `within` seconds, and nothing listens."""
        self._state.retired = True
        self.drop()
        self._driver.handle(Retire(within=within))
        self._binds.close_unused()

    def drop(self) -> None:
        """Forget what was prepared, and end its workers; without the lock only when the program ends."""
        state = self._state
        pending, state.pending = state.pending, None
        if pending is None:
            return
        self._driver.handle(Abort())
        if pending.generation is not None:
            # They also hold addresses that are closed here, which could not be bound again at once.
            self._workers.wait_gone({pending.generation}, timeout=LET_GO_TIMEOUT)
            state.frontends.pop(pending.generation, None)
            if outcome := self._driver.outcomes.pop(pending.generation, None):
                outcome.ready.set("given up")
        state.listeners.give_up(pending.fresh & set(state.listeners))


def _prepared(pending: PreparedSnapshot) -> Answer:
    return good(changed=pending.changed, generation=pending.generation)


def _listening_frontends(group: Group, reserved: ReservedBinds) -> Iterator[tuple[str, Address]]:
    for frontend in group.frontends:
        addresses = (address for bind in frontend.binds for address in reserved.addresses[bind])
        for address in dict.fromkeys(addresses):
            yield frontend.name, address


def _bind_problems(group: Group, problems: Iterable[BindProblem]) -> Iterator[AnswerProblem]:
    for problem in problems:
        name = next(each.name for each in group.frontends if problem.bind in each.binds)
        yield AnswerProblem(message=str(problem), path=f"{group.name}.frontends.{name}.bind")
