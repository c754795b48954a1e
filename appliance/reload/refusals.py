"""The demands of a new configuration that this machine cannot meet, found before any program prepares it."""

import time
from collections.abc import Container, Iterable, Iterator

from structlog.typing import FilteringBoundLogger

from appliance.core.forwarding.plan import families
from appliance.core.rollout.reload_retries import ReloadRetries
from appliance.model.operator_events import Publish
from appliance.model.paths import Paths
from appliance.model.program_names import STATS
from appliance.model.snapshot.frontends import Group
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files import readers
from appliance.net.listening.listener_lending import OtherGroups
from appliance.net.listening.listeners import Lend, Listeners, ReservedBinds
from appliance.net.listening.removed_virtual_addresses import binds_without_address, removed_addresses
from appliance.net.logging.log_file import objection
from appliance.net.nftables import forwarding
from appliance.reload import reload_events
from appliance.wire.lines.control import Answer, AnswerProblem, as_values, bad


class ReloadRefused(Exception):  # noqa: N818  # an outcome, reported to whoever asked
    """A reload that changes nothing, and why; `lost` are programs that exited or hung as they prepared."""

    def __init__(self, problems: Iterable[AnswerProblem], *, lost: Iterable[str] = ()) -> None:
        self.problems = tuple(problems)
        self.lost = frozenset(lost)
        super().__init__("; ".join(each.message for each in self.problems))


class FilesRefused(ReloadRefused):
    """A reload that is refused for the content of the files: repeating it needs other files."""


def refuse_log_file(accepted: Snapshot, wanted: Snapshot) -> None:
    """Refuse a new log file that our user cannot append to: every program would log elsewhere."""
    file = wanted.log.file
    if file is not None and file != accepted.log.file and (why := objection(file)):
        raise ReloadRefused([AnswerProblem(message=f"{file} cannot be appended to: {why}", path="log.file")])


def refuse_group(accepted: Snapshot, wanted: Snapshot) -> tuple[AnswerProblem, ...]:
    """Refuse a new group that our user cannot admit; return the warning that others apply at a start."""
    if wanted.readers == accepted.readers:
        return ()
    if wanted.readers is not None and (why := readers.objection(wanted.readers)):
        raise ReloadRefused([AnswerProblem(message=why, path="group")])
    later = "takes effect when the appliance is started again"
    return (AnswerProblem(message=later, path="group"),)


def unbindable(
    accepted: Snapshot, wanted: Snapshot, starting: Iterable[str], paths: Paths
) -> list[AnswerProblem]:
    """Return what would keep programs that do not run yet from binding.

    They are started after the point of no return, so it is tried here, and the sockets are closed again.
    """
    problems = list(_unbindable_stats(wanted)) if STATS in starting else []
    groups = [group for group in wanted.proxied if group.program in starting]
    removed = removed_addresses(accepted, wanted, paths) if groups else frozenset[str]()
    return problems + [
        problem
        for group in groups
        for problem in _unbindable(
            group,
            virtual=wanted.virtual_addresses,
            removed=removed,
            lend=OtherGroups(paths, group.program).lend,
        )
    ]


def unforwardable(wanted: Snapshot) -> Iterator[AnswerProblem]:
    """Yield what keeps the kernel from forwarding as a snapshot demands."""
    for group, frontend in wanted.forwarded:
        for why in forwarding.objections(families(wanted, frontend)):
            yield AnswerProblem(message=why, path=f"{group.name}.frontends.{frontend.name}.forward")


def _unbindable_stats(wanted: Snapshot) -> Iterator[AnswerProblem]:
    if wanted.stats is None:
        return
    probe = Listeners()
    reserved = probe.reserve(wanted.stats.binds)
    if not isinstance(reserved, ReservedBinds):
        yield from (AnswerProblem(message=str(each), path="stats.bind") for each in reserved)
    probe.keep_only(())


def _unbindable(
    group: Group, *, virtual: Container[str], removed: Container[str], lend: Lend
) -> Iterator[AnswerProblem]:
    probe = Listeners(lend)
    for frontend in group.frontends:
        reserved = probe.reserve(frontend.binds, virtual=virtual)
        problems = (
            binds_without_address(frontend.binds, removed)
            if isinstance(reserved, ReservedBinds)
            else reserved
        )
        for problem in problems:
            yield AnswerProblem(message=str(problem), path=f"{group.name}.frontends.{frontend.name}.bind")
    probe.keep_only(())


class ReloadRefusal:
    """The refusal of the last reload of the operator's files, and its remaining retries."""

    def __init__(self, log: FilteringBoundLogger, publish: Publish) -> None:
        self._log = log
        self._publish = publish
        self._retries = ReloadRetries()

    @property
    def again_in(self) -> float | None:
        """Seconds until the same files are retried, None if they are not."""
        due_at = self._retries.due_at
        return None if due_at is None else round(max(0.0, due_at - time.monotonic()), 1)

    @property
    def is_due(self) -> bool:
        """Whether a retry is due now."""
        return self._retries.is_due(time.monotonic())

    def forget(self) -> None:
        """Forget the refusal: there is a new request, or nothing is refused now."""
        self._retries.forget()

    def begin(self) -> None:
        """Note that a retry begins, so that one which ends in a bug is not repeated for ever."""
        self._retries.begin()

    def answer(self, refusal: ReloadRefused) -> Answer:
        """Return the answer to a refused reload, with the seconds until it is retried."""
        if isinstance(refusal, FilesRefused):
            self._retries.forget()
            return self.final(refusal)
        tries, errors = self._retries.tries, as_values(refusal.problems)
        again_in = self._retries.refused(time.monotonic(), lost=refusal.lost)
        # Reported once, and once more when given up: operators do not want a report of each retry.
        if again_in is None:
            self._log.warning("reload-given-up", errors=errors, tries=tries)
            self._publish(reload_events.refused(refusal.problems))
            return bad(*refusal.problems)
        if tries:
            self._log.info("reload-refused-again", errors=errors, tries=tries, again_in=again_in)
        else:
            self._log.warning("reload-refused", errors=errors, again_in=again_in)
            self._publish(reload_events.refused_for_now(refusal.problems))
        return Answer(ok=False, errors=refusal.problems, values={"again_in": again_in})

    def final(self, refusal: ReloadRefused) -> Answer:
        """Return the answer to a refused reload that is not retried from here."""
        self._log.warning("reload-refused", errors=as_values(refusal.problems))
        self._publish(reload_events.refused(refusal.problems))
        return bad(*refusal.problems)
