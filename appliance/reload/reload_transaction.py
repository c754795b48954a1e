"""One change of configuration, everywhere or nowhere: a two-phase commit over the programs.

Order: read and check everything, and answer at once if nothing has changed; every program prepares, which is
all that can fail; the snapshot is accepted (written), the point of no return; every program commits. Before
that point any failure aborts everywhere, and the old configuration is not affected. After it the failure of
one program cannot undo what others have done, so the order is repeated until it succeeds (`convergence`), and
the answer is an error: traffic still uses another configuration than the accepted one.

The program of a new group is started after that point; whether it can bind is tried before. A program that is
down reads the accepted snapshot when it starts, and is skipped with a warning. One that runs and cannot be
asked makes the reload fail: it would continue with the old configuration unnoticed.
"""

import contextlib
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from gevent import get_hub
from structlog.typing import FilteringBoundLogger

from appliance.core.program_table import needed
from appliance.core.rollout.change_plan import ProgramChanges, plan
from appliance.core.rollout.preview import as_values as as_shown
from appliance.core.rollout.preview import preview
from appliance.model.operator_events import Publish, publish_nowhere
from appliance.model.paths import Paths
from appliance.model.program_names import FORWARD, VRRP
from appliance.model.snapshot import diff
from appliance.model.snapshot.found_servers import with_found
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files import found_files, snapshots, start_note
from appliance.net.files.degraded import Degraded, clear_degraded, read_degraded, write_degraded
from appliance.net.files.start_note import StartNote
from appliance.net.loop.thread_pool import computed
from appliance.net.process.this_node import this_node
from appliance.net.sources.read_files import ReadFiles
from appliance.net.sources.watched_files import WatchedFiles
from appliance.net.supervision.supervisor_rpc import SupervisorUnavailable
from appliance.reload import reload_events
from appliance.reload.convergence import AcceptedFiles, OnceLog, converge, failures_of, not_committed, skipped
from appliance.reload.program_clients import ProgramClients, ProgramDown, ProgramLost, ProgramUnreachable
from appliance.reload.refusals import (
    FilesRefused,
    ReloadRefusal,
    ReloadRefused,
    refuse_group,
    refuse_log_file,
    unbindable,
    unforwardable,
)
from appliance.wire.lines.control import Answer, AnswerProblem, as_values, bad, good

if TYPE_CHECKING:
    from appliance.net.sources.judging import Judged


_Changed = tuple[dict[str, object], tuple[AnswerProblem, ...]]
"""The answer to a reload, and the programs that have not committed."""


class ReloadTransaction:
    """Brings every program from one snapshot to the next; `accepted` is what they have or should have."""

    def __init__(
        self,
        paths: Paths,
        accepted: Snapshot,
        clients: ProgramClients,
        log: FilteringBoundLogger,
        publish: Publish = publish_nowhere,
    ) -> None:
        self.accepted = accepted
        self._paths = paths
        self._clients = clients
        self._log = log
        self._publish = publish
        self._watched = WatchedFiles(paths)
        self._once = OnceLog(log)
        self._files = AcceptedFiles(paths, log, self._once)
        self.digest: str | None = None
        """SHA-256 of the operator's files that mean what is accepted, None until they are read."""
        self.common = self.node = ""
        self._judgement: tuple[str, Judged] | None = None
        self._refused = False
        self._forced = False
        self._refusal = ReloadRefusal(log, publish)

    @property
    def again_in(self) -> float | None:
        """Seconds until a reload that was refused for now is retried, None if there is none."""
        return self._refusal.again_in

    @property
    def not_kept(self) -> dict[str, str]:
        """Files that a later start may want and that cannot be written, with the reason."""
        return self._files.not_kept

    def reload(self, files: ReadFiles | None = None, *, forced: bool = False) -> Answer:
        """Apply these files or refuse them with every reason; `forced`: held virtual IPs prevent nothing."""
        self._refusal.forget()
        self._forced = forced
        return self._reload(self._watched.read() if files is None else files)

    def is_to_be_tried_again(self) -> bool:
        """Return whether a retry is due; changed files are left to the next request or the watch."""
        if not self._refusal.is_due:
            return False
        if self._watched.are_as_judged():
            return True
        self._refusal.forget()
        return False

    def try_again(self) -> Answer:
        """Retry a reload that was refused for now."""
        self._refusal.begin()
        return self._reload(self._watched.judged)

    def _reload(self, read: ReadFiles) -> Answer:
        answer = self._answer(lambda: self._change(read, forced=self._forced), self._refusal.answer)
        self._refused = not answer.ok and "configuration" not in answer.values
        if self._refused:
            self._still_await(answer.errors)
        else:
            self._refusal.forget()
        return answer

    def rehearse(self) -> Answer:
        """Return what `reload` would do now, or why it fails: programs prepare the files and forget them."""
        files = ReadFiles()
        judged = self._judged(files, snapshots.unused_number(self._paths, [self.accepted]))
        if judged.snapshot is None:
            return bad(*judged.errors)
        shown = self._preview(judged.snapshot, files)
        try:
            warnings = self._rehearsed(judged.snapshot)
        except ReloadRefused as refusal:
            return Answer(ok=False, errors=refusal.problems, values=shown)
        found = as_values((*judged.warnings, *warnings))
        return good(**shown, **({"warnings": found} if found else {}))

    def follow_found(self) -> Answer:
        """Give pools the servers that `discover` has found; the operator's file is not read."""
        return self._answer(self._change_found, self._refusal.final)  # `discover` sends it again

    def _answer(self, change: Callable[[], _Changed], refused: Callable[[ReloadRefused], Answer]) -> Answer:
        begun = time.monotonic()
        try:
            values, errors = change()
        except ReloadRefused as refusal:
            return refused(refusal)
        if errors:
            self._log.error("reload-incomplete", **values, errors=as_values(errors))
            self._publish(reload_events.incomplete(values, errors))
            return Answer(ok=False, errors=errors, values=values)
        seconds = round(time.monotonic() - begun, 3)
        self._log.info(
            "reload-done" if values["changed"] else "reload-unchanged", **values, duration_s=seconds
        )
        if values["changed"]:
            self._publish(reload_events.done(values))
        return good(**values, duration_s=seconds)

    def converge(self, *, everybody: bool) -> None:
        """Restore the accepted files, and bring programs to them: all that are up, or those that differ."""
        self._files.heal(self.accepted)
        converge(self.accepted, self._clients, self._once, everybody=everybody)

    def is_applied_everywhere(self) -> bool:
        """Return whether every needed program has applied the accepted snapshot."""
        number = self.accepted.number
        return all(self._clients.has_applied(each, number) for each in needed(self.accepted))

    def load_validator(self) -> None:
        """Import it before the first reload, and not at the start, as it takes half of that: proxies wait.

        On a machine with other work that is seconds, in which this program must show that it lives.
        """
        computed(self._validator)

    @property
    def watch(self) -> float:
        """Return the seconds between two checks of the operator's file, 0.0 for none."""
        return self.accepted.reload.watch

    def unasked(self) -> ReadFiles | None:
        """Return the operator's files if they have changed without a reload, else None."""
        files = self._watched.unasked()
        return None if files is None or self._is_known(files) else files

    def _is_known(self, files: ReadFiles) -> bool:
        """Return whether a file holds what is accepted, and there is no trouble that a reload would end.

        While the first good one is awaited, a faulty file is not refused.
        """
        if self._refused and not self.accepted.awaited:
            return False
        if self._is_as_started(files):
            return True
        judged = self._judged(files, self.accepted.number)
        if judged.snapshot is None:
            self._still_await(judged.errors)
            return self.accepted.awaited
        if not snapshots.same(judged.snapshot, self.accepted) or read_degraded(self._paths) is not None:
            return False
        self._note(files, judged)
        return True

    def _is_as_started(self, files: ReadFiles) -> bool:
        """Return whether the files are those that `run` has made the accepted snapshot of."""
        note = start_note.read(self._paths)
        if note is None or (note.snapshot, note.files) != (self.accepted.number, files.digest()):
            return False
        if read_degraded(self._paths) is not None:
            return False
        self._note(files, note)
        return True

    def _note(self, files: ReadFiles, judged: "Judged | StartNote") -> None:
        """Note of which files the accepted configuration is."""
        self.digest, self.common, self.node = files.sum(), judged.common, judged.node

    def _still_await(self, errors: tuple[AnswerProblem, ...]) -> None:
        """Report why the first good configuration is still awaited, if it is."""
        note = read_degraded(self._paths)
        if self.accepted.awaited and (note is None or note.problems != errors):
            self._log.warning("configuration-awaited", errors=as_values(errors))
            _attempt(partial(write_degraded, self._paths, Degraded(since=time.time(), problems=errors)))

    def _judged(self, files: ReadFiles, number: int) -> "Judged":
        """Validate a file in a thread: a long one takes seconds, and this program must answer meanwhile.

        What was accepted last is not judged again if each file is as it was, and the node has kept its name.
        What was refused is: the reason may be the machine's, such as a group that it did not have.
        """
        if self._judgement is None or self._judgement[0] != _moment(files):
            judge = partial(self._validator(), self._paths, files, number=number)
            found: Judged = get_hub().threadpool.apply(judge)
            self._judgement = _moment(files), found
        judged = self._judgement[1]
        if judged.snapshot is None:
            self._judgement = None
            return judged
        return replace(judged, snapshot=self._found(replace(judged.snapshot, number=number)))

    def _found(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with the servers found in the cluster."""
        return with_found(snapshot, found_files.read(self._paths), before=self.accepted)

    @staticmethod
    def _validator() -> "Callable[..., Judged]":
        from appliance.net.sources.judging import judge  # noqa: PLC0415

        return judge

    def _change_found(self) -> _Changed:
        self._files.heal(self.accepted)
        number = snapshots.unused_number(self._paths, [self.accepted])
        wanted = self._found(self.accepted)
        changed = diff.changed(self.accepted, wanted)
        if not changed:
            return self._result(changed, ()), ()
        errors, warnings = self._accept(replace(wanted, number=number), forced=False)
        return self._result(changed, warnings), errors

    def _change(self, files: ReadFiles, *, forced: bool) -> _Changed:
        # The directory may be gone; if it cannot be made, the following steps report why.
        self._files.heal(self.accepted)
        judged = self._judged(files, snapshots.unused_number(self._paths, [self.accepted]))
        if judged.snapshot is None:
            raise FilesRefused(judged.errors)
        refuse_log_file(self.accepted, judged.snapshot)
        later = refuse_group(self.accepted, judged.snapshot)
        changed = diff.changed(self.accepted, judged.snapshot)
        errors: tuple[AnswerProblem, ...] = ()
        if changed or self.accepted.awaited:
            errors, warnings = self._accept(judged.snapshot, forced=forced)
        else:
            warnings = self._files.heal(self.accepted)
        warnings += _attempt(partial(clear_degraded, self._paths))
        self._note(files, judged)
        return self._result(changed, (*judged.warnings, *later, *warnings)), errors

    def _preview(self, wanted: Snapshot, files: ReadFiles) -> dict[str, object]:
        from appliance.net.sources.judging import document  # noqa: PLC0415  # as the validator

        said = get_hub().threadpool.apply(document, (self._paths, files))
        return as_shown(preview(self.accepted, wanted, said))

    def _rehearsed(self, wanted: Snapshot) -> list[AnswerProblem]:
        """Try everything that can fail; return warnings; raises ReloadRefused."""
        refuse_log_file(self.accepted, wanted)
        later = refuse_group(self.accepted, wanted)
        if not diff.changed(self.accepted, wanted) and not self.accepted.awaited:
            return []
        steps = plan(self.accepted, wanted)
        try:
            snapshots.propose(self._paths, wanted)
            absent = self._prepare(steps, wanted, forced=False)
        except OSError as error:
            raise ReloadRefused([AnswerProblem(message=str(error))]) from error
        finally:
            self._withdraw(steps, wanted.number)
        return [*later, *skipped(absent)]

    def _withdraw(self, steps: ProgramChanges, number: int) -> None:
        """Order every program to forget what it has prepared."""
        self._clients.abort(steps.prepare, number)
        with contextlib.suppress(OSError):  # the next one removes them
            snapshots.prune(self._paths, self.accepted.number)

    def _result(self, changed: Iterable[str], warnings: Iterable[AnswerProblem]) -> dict[str, object]:
        values: dict[str, object] = {
            "generation": self.accepted.number,
            "configuration": self.accepted.number,
            "changed": list(changed),
        }
        if not values["changed"]:
            values["unchanged"] = True
        if found := as_values(warnings):
            values["warnings"] = found
        return values

    def _accept(
        self, snapshot: Snapshot, *, forced: bool
    ) -> tuple[tuple[AnswerProblem, ...], list[AnswerProblem]]:
        """Prepare, accept, commit; return failed commits and warnings. If refused, nothing has changed."""
        steps = plan(self.accepted, snapshot)
        with self._clients.connections():
            absent = self._agree(steps, snapshot, forced=forced)
            outcomes = self._clients.commit(steps.commits(but=absent), snapshot.number)
        failed = {name: outcome for name, outcome in outcomes.items() if not isinstance(outcome, ProgramDown)}
        gone = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, ProgramDown)}
        return not_committed(failed), [*skipped({**absent, **gone}), *self._settle(steps, absent, gone)]

    def _agree(self, steps: ProgramChanges, snapshot: Snapshot, *, forced: bool) -> dict[str, ProgramDown]:
        """Prepare and accept; return the programs that are down."""
        try:
            snapshots.propose(self._paths, snapshot)
            absent = self._prepare(steps, snapshot, forced=forced)
            snapshots.accept(self._paths, snapshot)
        except (ReloadRefused, OSError) as error:
            self._withdraw(steps, snapshot.number)
            raise (
                error
                if isinstance(error, ReloadRefused)
                else ReloadRefused([AnswerProblem(message=str(error))])
            ) from error
        self.accepted = snapshot
        return absent

    def _prepare(self, steps: ProgramChanges, snapshot: Snapshot, *, forced: bool) -> dict[str, ProgramDown]:
        """Do everything that can fail; return the programs that are down, and are not asked."""
        failures = unbindable(self.accepted, snapshot, steps.start, self._paths)
        failures += unforwardable(snapshot)
        missing = {each: found for each in steps.prepare if (found := self._clients.wait_for(each))}
        absent = {each: found for each, found in missing.items() if isinstance(found, ProgramDown)}
        failures += [
            AnswerProblem(message=f"{each}: {found.reason}")
            for each, found in missing.items()
            if isinstance(found, ProgramUnreachable)
        ]
        outcomes = self._clients.prepare(
            (each for each in steps.prepare if each not in missing), snapshot.number, forced=forced
        )
        failures += [failure for each, outcome in outcomes.items() for failure in failures_of(each, outcome)]
        if failures:
            lost = {each for each, outcome in outcomes.items() if isinstance(outcome, ProgramLost)}
            raise ReloadRefused(failures, lost=lost)
        return absent

    def _settle(
        self, steps: ProgramChanges, absent: Collection[str], gone: Collection[str]
    ) -> list[AnswerProblem]:
        """Do what follows the acceptance and may fail without undoing it; return the failures."""
        # The kernel's rules outlive a forward that was down: it is started to remove them.
        left = [each for each in steps.stop if each == FORWARD and (each in absent or each in gone)]
        # Start programs first: a program that stops lends them its listening sockets.
        failed = [
            *_attempt(*(partial(self._clients.start, each) for each in steps.start)),
            *_attempt(*(partial(self._clients.try_again, each) for each in absent)),
        ]
        late = [(each, self._clients.wait_until_applied(each, self.accepted.number)) for each in steps.start]
        failed += [
            *_attempt(*(partial(self._clients.stop, each) for each in steps.stop if each not in left)),
            *_attempt(*(self._tidy for each in steps.stop if each == VRRP)),
            *_attempt(*(partial(self._run_once, each) for each in left)),
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
        """Remove what a dead vrrp left; a living one does that itself."""
        from appliance.net.netlink import vrrp_leftovers  # noqa: PLC0415  # netlink, for this case only

        if vrrp_leftovers.remove_all(self._paths, self._log):
            # vrrp may do so, which is started for it: without a virtual router that is all it does.
            self._run_once(VRRP)

    def _run_once(self, program: str) -> None:
        """Start a program that is not needed, so that it cleans up its leftovers and stops."""
        try:
            self._clients.start(program)
            self._clients.wait_until_applied(program, self.accepted.number)
        finally:
            self._clients.stop(program)


def _moment(files: ReadFiles) -> str:
    """Return a text that differs if a judgement of the files may."""
    return f"{files.digest()} {this_node()}"


def _attempt(*steps: Callable[[], None]) -> list[AnswerProblem]:
    """Do every step, whatever came of those before it; return the failures."""
    failed = []
    for step in steps:
        try:
            step()
        except (OSError, SupervisorUnavailable) as error:
            failed.append(AnswerProblem(message=str(error)))
    return failed
