"""One change of configuration, everywhere or nowhere.

Order: read and check everything; nothing changed is an answer; every program prepares, which is all that can
fail; the snapshot is accepted (written), the point of no return; every program commits. Before that point any
failure aborts everywhere, and the old configuration never noticed.

A program of a group that is new is started after that point; that it can bind is tried before.
A program that is down takes the accepted snapshot when it starts and is passed over with a warning; one that
runs and cannot be asked is a refusal. A program that does not do what it had prepared is told again, and the
answer is no: traffic goes on by another configuration than the accepted one. One that
is found with another snapshot than the accepted one (it started in the middle of a change, or whoever led the
change died in it) is led to the accepted one by `converge`.
"""

import dataclasses
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from gevent import get_hub
from structlog.typing import FilteringBoundLogger

from appliance.core.rollout.needed_programs import VRRP, ProgramChanges, needed, plan
from appliance.model.paths import Paths
from appliance.model.snapshot import diff
from appliance.model.snapshot.frontends import Group
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files import readers, snapshots, state_files
from appliance.net.logging.log_file import objection
from appliance.net.reloading.program_clients import Outcome, ProgramClients, ProgramDown, ProgramUnreachable
from appliance.net.reloading.supervisor_rpc import SupervisorUnavailable
from appliance.net.reloading.watched_file import Content, WatchedFile
from appliance.net.workers.listener_lending import OtherGroups
from appliance.net.workers.listeners import Lend, Listeners, ReservedBinds, lost
from appliance.net.workers.removed_virtual_addresses import going_addresses
from appliance.wire.lines.control import Answer, AnswerProblem, as_values, bad, good

if TYPE_CHECKING:
    from appliance.net.files.operators_file import Judged


class ReloadRefused(Exception):  # noqa: N818  # an outcome, told to whoever asked
    """A reload that changes nothing, and why."""

    def __init__(self, problems: Iterable[AnswerProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(each.message for each in self.problems))


class ReloadTransaction:
    """Leads every program from one snapshot to the next; `accepted` is what they obey or are led to."""

    def __init__(
        self, paths: Paths, accepted: Snapshot, fleet: ProgramClients, log: FilteringBoundLogger
    ) -> None:
        self.accepted = accepted
        self._paths = paths
        self._fleet = fleet
        self._log = log
        self._file = WatchedFile(paths.config)
        self._told: set[tuple[str, str]] = set()
        self._refused = False
        self.not_kept: dict[str, str] = {}
        """Files that a later start may want and that cannot be written, with the reason."""

    def reload(self, content: Content | None = None, *, forced: bool = False) -> Answer:
        """Make the operator's file real, or refuse it with every reason; `content` is what was read of it.

        With `forced` a virtual IP that is held here does not stand in its way.
        """
        begun = time.monotonic()
        try:
            values, errors = self._change(self._file.read() if content is None else content, forced=forced)
        except ReloadRefused as refusal:
            self._refused = True
            self._log.warning("reload-refused", errors=as_values(refusal.problems))
            return bad(*refusal.problems)
        self._refused = False
        if errors:
            self._log.error("reload-incomplete", **values, errors=as_values(errors))
            return Answer(ok=False, errors=errors, values=values)
        seconds = round(time.monotonic() - begun, 3)
        self._log.info(
            "reload-done" if values["changed"] else "reload-unchanged", **values, duration_s=seconds
        )
        return good(**values, duration_s=seconds)

    def converge(self, *, everybody: bool) -> None:
        """Lead programs to the accepted snapshot: all that are up, or those that say they obey another.

        The files that programs start with are put right, those that were damaged set aside. Programs that
        are needed and never ran, or were stopped by a reload, are started, others stopped.
        """
        programs = needed(self.accepted)
        self._heal_files()
        try:
            self._fleet.put_right(programs)
        except (SupervisorUnavailable, OSError) as error:
            self._say_once("supervisord", str(error))
        for program in programs:
            obeyed = self._fleet.snapshot_of(program)
            if obeyed is not None and (everybody or obeyed != self.accepted.number):
                self._lead(program)

    def is_obeyed(self) -> bool:
        """Say whether every program that is needed obeys the accepted snapshot."""
        number = self.accepted.number
        return all(self._fleet.is_obeyed_by(each, number) for each in needed(self.accepted))

    def load_validator(self) -> None:
        """Import it before the first reload, and not at the start, of which it is half: proxies wait."""
        self._validator()

    @property
    def watch(self) -> float:
        """Return the seconds between two looks at the operator's file, 0.0 for none."""
        return self.accepted.reload.watch

    def unasked(self) -> Content | None:
        """Look at the operator's file; return what is there where a reload was probably lost, else None."""
        content = self._file.unasked()
        return None if content is None or self._is_known(content) else content

    def _is_known(self, content: Content) -> bool:
        """Say whether there is nothing to do, and nothing to say: what was refused ends with a reload."""
        if self._refused:
            return False
        judged = self._judged(content, self.accepted.number)
        same = judged.snapshot is not None and snapshots.same(judged.snapshot, self.accepted)
        return same and snapshots.read_degraded(self._paths) is None

    def _judged(self, content: Content, number: int) -> "Judged":
        """Judge a file in a thread: a long one takes its time, and this program has to answer and to beat."""
        judge = partial(self._validator(), content, path=self._file.path, number=number)
        judged: Judged = get_hub().threadpool.apply(judge)
        return judged

    @staticmethod
    def _validator() -> "Callable[..., Judged]":
        from appliance.net.files.operators_file import judge_content  # noqa: PLC0415

        return judge_content

    def _change(
        self, content: Content, *, forced: bool
    ) -> tuple[dict[str, object], tuple[AnswerProblem, ...]]:
        self._heal_files()  # the directory may be gone; where it cannot be made, what follows says why
        judged = self._judged(content, snapshots.unused_number(self._paths, [self.accepted]))
        if judged.snapshot is None:
            raise ReloadRefused(judged.errors)
        self._refuse_log_file(judged.snapshot)
        later = self._refuse_group(judged.snapshot)
        changed = diff.changed(self.accepted, judged.snapshot)
        errors: tuple[AnswerProblem, ...] = ()
        if changed:
            errors, warnings = self._accept(judged.snapshot, forced=forced)
        else:
            warnings = self._heal_files()
        warnings += _attempt(partial(snapshots.clear_degraded, self._paths))
        return self._result(changed, (*judged.warnings, *later, *warnings)), errors

    def _refuse_log_file(self, wanted: Snapshot) -> None:
        """Refuse a new log file that our user cannot append to: every program would log elsewhere."""
        file = wanted.log.file
        if file is not None and file != self.accepted.log.file and (why := objection(file)):
            raise ReloadRefused(
                [AnswerProblem(message=f"{file} cannot be appended to: {why}", path="log.file")]
            )

    def _refuse_group(self, wanted: Snapshot) -> tuple[AnswerProblem, ...]:
        """Refuse a new group that our user cannot let in; return when one that he can is obeyed."""
        if wanted.readers == self.accepted.readers:
            return ()
        if wanted.readers is not None and (why := readers.objection(wanted.readers)):
            raise ReloadRefused([AnswerProblem(message=why, path="group")])
        later = "takes effect when the appliance is started again"
        return (AnswerProblem(message=later, path="group"),)

    def _heal_files(self) -> list[AnswerProblem]:
        """Write again what is lost or damaged of the accepted configuration; return what cannot be."""
        for path, reason in list(snapshots.damaged(self._paths)):
            aside = state_files.set_aside(path)
            self._log.error("state-damaged", reason=reason, aside=str(aside) if aside else None)
        heals = (snapshots.heal, snapshots.heal_last_good)
        failed = [error for heal in heals if (error := _error(partial(heal, self._paths, self.accepted)))]
        self.not_kept = {str(each.filename): each.strerror or str(each) for each in failed}
        for name, why in self.not_kept.items():
            self._say_once("state", f"{name}: {why}")
        if not failed:
            self._told = {each for each in self._told if each[0] != "state"}
        return [AnswerProblem(message=f"{path}: {why}") for path, why in self.not_kept.items()]

    def _result(self, changed: Iterable[str], warnings: Iterable[AnswerProblem]) -> dict[str, object]:
        values: dict[str, object] = {
            "generation": self.accepted.number,
            "configuration": self.accepted.number,
            "changed": list(changed),
        }
        if not values["changed"]:
            values["unchanged"] = True
        if told := as_values(warnings):
            values["warnings"] = told
        return values

    def _accept(
        self, snapshot: Snapshot, *, forced: bool
    ) -> tuple[tuple[AnswerProblem, ...], list[AnswerProblem]]:
        """Prepare, accept, commit; return who did not obey, and what is to be said besides.

        Refused: nothing has changed.
        """
        steps, number = plan(self.accepted, snapshot), snapshot.number
        try:
            snapshots.propose(self._paths, snapshot)
            absent = self._prepare(steps, snapshot, forced=forced)
            snapshots.accept(self._paths, snapshot)
        except (ReloadRefused, OSError) as error:
            self._fleet.abort(steps.prepare, number)
            snapshots.prune(self._paths, self.accepted.number)
            raise (
                error
                if isinstance(error, ReloadRefused)
                else ReloadRefused([AnswerProblem(message=str(error))])
            ) from error
        self.accepted = snapshot
        outcomes = self._fleet.commit((each for each in steps.prepare if each not in absent), number)
        disobeyed = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, Answer)}
        gone = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, ProgramDown)}
        return _uncommitted(disobeyed), [*_skipped({**absent, **gone}), *self._settle(steps, absent)]

    def _prepare(self, steps: ProgramChanges, snapshot: Snapshot, *, forced: bool) -> dict[str, ProgramDown]:
        """Have everything done that can fail; return who was not there to be asked."""
        starting = tuple(group for group in snapshot.groups if group.program in steps.start)
        going = going_addresses(self.accepted, snapshot, self._paths) if starting else frozenset[str]()
        failures = [
            each
            for group in starting
            for each in _unbindable(
                group,
                virtual=snapshot.virtual_addresses,
                going=going,
                lend=OtherGroups(self._paths, group.program).lend,
            )
        ]
        missing = {each: found for each in steps.prepare if (found := self._fleet.wait_for(each))}
        absent = {each: found for each, found in missing.items() if isinstance(found, ProgramDown)}
        failures += [
            AnswerProblem(message=f"{each}: {found.reason}")
            for each, found in missing.items()
            if isinstance(found, ProgramUnreachable)
        ]
        outcomes = self._fleet.prepare(
            (each for each in steps.prepare if each not in missing), snapshot.number, forced=forced
        )
        failures += [failure for each, outcome in outcomes.items() for failure in _failures(each, outcome)]
        if failures:
            raise ReloadRefused(failures)
        return absent

    def _settle(self, steps: ProgramChanges, absent: Iterable[str]) -> list[AnswerProblem]:
        """Do what follows the acceptance and may fail without undoing it; return what did."""
        # First those that start: a program that stops lends them its listeners.
        failed = [
            *_attempt(*(partial(self._fleet.start, each) for each in steps.start)),
            *_attempt(*(partial(self._fleet.try_again, each) for each in absent)),
        ]
        late = [(each, self._fleet.wait_until_obeys(each, self.accepted.number)) for each in steps.start]
        failed += [
            *_attempt(*(partial(self._fleet.stop, each) for each in steps.stop)),
            *_attempt(*(self._tidy for each in steps.stop if each == VRRP)),
            *_attempt(
                partial(snapshots.keep_as_last_good, self._paths, self.accepted),
                partial(snapshots.prune, self._paths, self.accepted.number),
            ),
        ]
        return [
            *failed,
            *(
                AnswerProblem(message=f"{each} does not run yet: {down.reason}")
                for each, down in late
                if down
            ),
        ]

    def _tidy(self) -> None:
        """Remove what a vrrp that was down left; one that still lives does it itself."""
        from appliance.net.netlink import vrrp_leftovers  # noqa: PLC0415  # netlink, for this case only

        if vrrp_leftovers.remove_all(self._paths, self._log):
            # vrrp may, which is started for it: without a virtual router that is all it does.
            self._fleet.start(VRRP)
            self._fleet.wait_until_obeys(VRRP, self.accepted.number)
            self._fleet.stop(VRRP)

    def _lead(self, program: str) -> None:
        number = self.accepted.number
        failures = _failures(program, self._fleet.prepare([program], number, forced=True)[program])
        if not failures:
            failures = _failures(program, self._fleet.commit([program], number)[program])
        for failure in failures:
            self._say_once(program, failure.message)
        if not failures:
            self._told = {each for each in self._told if each[0] != program}

    def _say_once(self, program: str, message: str) -> None:
        if (program, message) not in self._told:
            self._told.add((program, message))
            self._log.error("converge-failed", name=program, error=message)


def _attempt(*steps: Callable[[], None]) -> list[AnswerProblem]:
    """Do every step, whatever became of those before it; return what failed."""
    failed = []
    for step in steps:
        try:
            step()
        except (OSError, SupervisorUnavailable) as error:
            failed.append(AnswerProblem(message=str(error)))
    return failed


def _error(step: Callable[[], None]) -> OSError | None:
    try:
        step()
    except OSError as error:
        return error
    return None


def _failures(program: str, outcome: Outcome) -> list[AnswerProblem]:
    """Return why a program did not do what it was asked; one that has gone meanwhile did not either."""
    if isinstance(outcome, ProgramDown):
        return [AnswerProblem(message=f"{program}: {outcome.reason}")]
    errors = outcome.errors or (() if outcome.ok else (AnswerProblem(message="refused without a reason"),))
    return [dataclasses.replace(each, message=f"{program}: {each.message}") for each in errors]


def _unbindable(
    group: Group, *, virtual: Container[str], going: Container[str], lend: Lend
) -> Iterator[AnswerProblem]:
    """Yield what would keep a program that does not run yet from binding."""
    probe = Listeners(lend)
    for frontend in group.frontends:
        reserved = probe.reserve(frontend.binds, virtual=virtual)
        problems = lost(frontend.binds, going) if isinstance(reserved, ReservedBinds) else reserved
        for problem in problems:
            yield AnswerProblem(message=str(problem), path=f"{group.name}.frontends.{frontend.name}.bind")
    probe.keep_only(())


def _skipped(absent: Mapping[str, ProgramDown]) -> list[AnswerProblem]:
    takes = "it takes this configuration when it starts"
    return [
        AnswerProblem(message=f"{name} is not running ({down.reason}): {takes}")
        for name, down in absent.items()
    ]


def _uncommitted(outcomes: Mapping[str, Answer]) -> tuple[AnswerProblem, ...]:
    failures = (each for name, outcome in outcomes.items() for each in _failures(name, outcome))
    return tuple(dataclasses.replace(each, message=f"{each.message}: it is told again") for each in failures)
