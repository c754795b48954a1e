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

from appliance.core.acceptance import VRRP, Plan, needed, plan
from appliance.model import diff
from appliance.model.paths import Paths
from appliance.model.snapshot import Group, Snapshot
from appliance.net.files import snapshots
from appliance.net.reloading.fleet import Down, Fleet, Outcome, Unreachable
from appliance.net.reloading.supervisor_rpc import SupervisorUnavailable
from appliance.net.workers.going_addresses import going_addresses
from appliance.net.workers.lending import Lenders
from appliance.net.workers.listeners import Lend, Listeners, Reserved, lost
from appliance.wire.control import Answer, Problem, as_values, bad, good

if TYPE_CHECKING:
    from appliance.net.files.operators_file import Judged


class Refused(Exception):  # noqa: N818  # an outcome, told to whoever asked
    """A reload that changes nothing, and why."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(each.message for each in self.problems))


class Changeover:
    """Leads every program from one snapshot to the next; `accepted` is what they obey or are led to."""

    def __init__(self, paths: Paths, accepted: Snapshot, fleet: Fleet, log: FilteringBoundLogger) -> None:
        self.accepted = accepted
        self._paths = paths
        self._fleet = fleet
        self._log = log
        self._told: set[tuple[str, str]] = set()

    def reload(self) -> Answer:
        """Make the operator's file real, or refuse it with every reason."""
        begun = time.monotonic()
        try:
            values, errors = self._change()
        except Refused as refusal:
            self._log.warning("reload-refused", errors=as_values(refusal.problems))
            return bad(*refusal.problems)
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

        With `everybody` the last-good copy is put right too.
        Programs that are needed and never ran, or were stopped by a reload, are started, others stopped.
        """
        programs = needed(self.accepted)
        for failure in _attempt(self._heal_runtime):
            self._say_once("runtime", failure.message)
        for failure in _attempt(self._heal) if everybody else ():
            self._say_once("last-good", failure.message)
        try:
            self._fleet.put_right(programs)
        except (SupervisorUnavailable, OSError) as error:
            self._say_once("supervisord", str(error))
        for program in programs:
            obeyed = self._fleet.snapshot_of(program)
            if obeyed is not None and (everybody or obeyed != self.accepted.number):
                self._lead(program)

    def load_validator(self) -> None:
        """Import it before the first reload, and not at the start, of which it is half: proxies wait."""
        self._validator()

    @staticmethod
    def _validator() -> "Callable[..., Judged]":
        from appliance.net.files.operators_file import judge  # noqa: PLC0415

        return judge

    def _change(self) -> tuple[dict[str, object], tuple[Problem, ...]]:
        _attempt(self._heal_runtime)  # where it fails, so does what follows, and says why
        number = snapshots.unused_number(self._paths, [self.accepted])
        # A long file takes its time, in which this program has to answer, and to beat.
        judged = get_hub().threadpool.apply(self._validator(), (self._paths.config,), {"number": number})
        if judged.snapshot is None:
            raise Refused(judged.errors)
        changed = diff.changed(self.accepted, judged.snapshot)
        errors: tuple[Problem, ...] = ()
        if changed:
            errors, warnings = self._accept(judged.snapshot)
        else:
            warnings = _attempt(self._heal)
        warnings += _attempt(partial(snapshots.clear_degraded, self._paths))
        return self._result(changed, (*judged.warnings, *warnings)), errors

    def _heal_runtime(self) -> None:
        snapshots.heal_accepted(self._paths, self.accepted)

    def _heal(self) -> None:
        snapshots.heal_last_good(self._paths, self.accepted)

    def _result(self, changed: Iterable[str], warnings: Iterable[Problem]) -> dict[str, object]:
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

    def _accept(self, snapshot: Snapshot) -> tuple[tuple[Problem, ...], list[Problem]]:
        """Prepare, accept, commit; return who did not obey, and what is to be said besides.

        Refused: nothing has changed.
        """
        steps, number = plan(self.accepted, snapshot), snapshot.number
        try:
            snapshots.propose(self._paths, snapshot)
            absent = self._prepare(steps, snapshot)
            snapshots.accept(self._paths, snapshot)
        except (Refused, OSError) as error:
            self._fleet.abort(steps.prepare, number)
            snapshots.prune(self._paths, self.accepted.number)
            raise error if isinstance(error, Refused) else Refused([Problem(message=str(error))]) from error
        self.accepted = snapshot
        outcomes = self._fleet.commit((each for each in steps.prepare if each not in absent), number)
        disobeyed = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, Answer)}
        gone = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, Down)}
        return _uncommitted(disobeyed), [*_skipped({**absent, **gone}), *self._settle(steps, absent)]

    def _prepare(self, steps: Plan, snapshot: Snapshot) -> dict[str, Down]:
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
                lend=Lenders(self._paths, group.program).lend,
            )
        ]
        missing = {each: found for each in steps.prepare if (found := self._fleet.wait_for(each))}
        absent = {each: found for each, found in missing.items() if isinstance(found, Down)}
        failures += [
            Problem(message=f"{each}: {found.reason}")
            for each, found in missing.items()
            if isinstance(found, Unreachable)
        ]
        outcomes = self._fleet.prepare(
            (each for each in steps.prepare if each not in missing), snapshot.number
        )
        failures += [failure for each, outcome in outcomes.items() for failure in _failures(each, outcome)]
        if failures:
            raise Refused(failures)
        return absent

    def _settle(self, steps: Plan, absent: Iterable[str]) -> list[Problem]:
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
            *(Problem(message=f"{each} does not run yet: {down.reason}") for each, down in late if down),
        ]

    def _tidy(self) -> None:
        """Remove what a vrrp that was down left; one that still lives does it itself."""
        from appliance.net.interfaces import vrrp_leftovers  # noqa: PLC0415  # netlink, for this case only

        if vrrp_leftovers.remove_all(self._paths, self._log):
            # vrrp may, which is started for it: without a virtual router that is all it does.
            self._fleet.start(VRRP)
            self._fleet.wait_until_obeys(VRRP, self.accepted.number)
            self._fleet.stop(VRRP)

    def _lead(self, program: str) -> None:
        number = self.accepted.number
        failures = _failures(program, self._fleet.prepare([program], number)[program])
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


def _attempt(*steps: Callable[[], None]) -> list[Problem]:
    """Do every step, whatever became of those before it; return what failed."""
    failed = []
    for step in steps:
        try:
            step()
        except (OSError, SupervisorUnavailable) as error:
            failed.append(Problem(message=str(error)))
    return failed


def _failures(program: str, outcome: Outcome) -> list[Problem]:
    """Return why a program did not do what it was asked; one that has gone meanwhile did not either."""
    if isinstance(outcome, Down):
        return [Problem(message=f"{program}: {outcome.reason}")]
    errors = outcome.errors or (() if outcome.ok else (Problem(message="refused without a reason"),))
    return [dataclasses.replace(each, message=f"{program}: {each.message}") for each in errors]


def _unbindable(
    group: Group, *, virtual: Container[str], going: Container[str], lend: Lend
) -> Iterator[Problem]:
    """Yield what would keep a program that does not run yet from binding."""
    probe = Listeners(lend)
    for frontend in group.frontends:
        reserved = probe.reserve(frontend.binds, virtual=virtual)
        problems = lost(frontend.binds, going) if isinstance(reserved, Reserved) else reserved
        for problem in problems:
            yield Problem(message=str(problem), path=f"{group.name}.frontends.{frontend.name}.bind")
    probe.keep_only(())


def _skipped(absent: Mapping[str, Down]) -> list[Problem]:
    takes = "it takes this configuration when it starts"
    return [
        Problem(message=f"{name} is not running ({down.reason}): {takes}") for name, down in absent.items()
    ]


def _uncommitted(outcomes: Mapping[str, Answer]) -> tuple[Problem, ...]:
    failures = (each for name, outcome in outcomes.items() for each in _failures(name, outcome))
    return tuple(dataclasses.replace(each, message=f"{each.message}: it is told again") for each in failures)
