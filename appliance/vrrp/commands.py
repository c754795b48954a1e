"""The commands that `vrrp` answers over its control socket."""

import os
import pwd
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Final

from appliance.core.vrrp.election import RouterState
from appliance.model.messages.problems import dotted
from appliance.model.paths import Paths
from appliance.model.program_names import LINGER, VRRP
from appliance.model.rules.machine_needs import MachineNeed, MachineNeedKind, needs
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.control.deferred_answer import DeferredAnswer
from appliance.net.control.loop_control_server import Handler
from appliance.net.files import snapshots
from appliance.net.loop.background_work import BackgroundWork
from appliance.net.loop.loop import Loop
from appliance.net.scripts.machine_needs import objection
from appliance.vrrp.groups.opening import OpeningOutcome
from appliance.vrrp.service import VrrpService
from appliance.vrrp.status import router_status, takeover_state
from appliance.vrrp.takeover.predecessor import TAKE_OVER, TAKEN_OVER
from appliance.wire.lines import status_answer, vrrp_takeover
from appliance.wire.lines.control import Answer, AnswerProblem, Question, bad, good
from appliance.wire.lines.vrrp_status import RealtimeStatus, VrrpStatus

_STOPPING: Final = f"{VRRP} is stopping"


class VrrpCommands:
    """The handlers, called from the loop: none of them waits, and each reads the clock once."""

    def __init__(self, paths: Paths, program: VrrpService, loop: Loop) -> None:
        self._paths = paths
        self._loop = loop
        self._program = program
        self._pending: Snapshot | None = None
        self._committing: tuple[int, DeferredAnswer] | None = None
        self._started_at = time.time()

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers by the name of their command."""
        return {
            "status": self._status,
            "prepare": self._unless_stopping(self._prepare),
            "commit": self._unless_stopping(self._commit),
            "abort": self._abort,
            "move": self._unless_stopping(self._move),
            "reclaim": self._unless_stopping(self._reclaim),
            "informed": self._unless_stopping(self._informed),
            "take-part": self._unless_stopping(self._take_part),
            TAKE_OVER: self._take_over,
            TAKEN_OVER: self._taken_over,
        }

    def _unless_stopping(self, handler: Handler) -> Handler:
        """Refuse a command while the program stops: it would undo the stop."""
        return lambda question: bad(_STOPPING) if self._program.stopping else handler(question)

    def _status(self, _: Question) -> Answer:
        program, now = self._program, time.monotonic()
        lateness = program.reports.lateness
        status = VrrpStatus(
            program=VRRP,
            pid=os.getpid(),
            started_at=self._started_at,
            snapshot=program.snapshot.number if program.snapshot else 0,
            pending=self._pending.number if self._pending else None,
            missing=program.missing,
            realtime=RealtimeStatus(**asdict(program.realtime)),
            late_wakeups=lateness.count,
            latest_wakeup_s=round(lateness.latest, 6),
            routers=tuple(
                router_status(group, instance, now=now)
                for group in program.groups
                for instance in group.instances.values()
            ),
            leaving=tuple(name for group in program.groups.leaving for name in group.instances),
            takes_part=program.takes_part,
        )
        return good(**status_answer.encode(status))

    def _prepare(self, question: Question) -> Answer | DeferredAnswer:
        snapshot = snapshots.proposed(self._paths, question.integer("snapshot"))
        forced = question.values.get("forced") is True
        if endangered := () if forced else self._program.endangered(snapshot):
            return bad(*endangered)
        users, commands = _users(snapshot.virtual_routers), () if forced else self._new_commands(snapshot)
        if not users and not commands:
            return self._prepared(snapshot, ())
        answer = DeferredAnswer()
        # A directory server may be remote, or a file system hang, and the loop does not wait for them.
        BackgroundWork(
            self._loop,
            lambda: (*_unknown(users), *_missing(commands)),
            lambda objections: answer.resolve(self._prepared(snapshot, objections)),
        )
        return answer

    def _new_commands(self, snapshot: Snapshot) -> tuple[MachineNeed, ...]:
        """Return the commands that only the new configuration has.

        A command file that has since disappeared must not fail reloads that leave the command as it was.
        """
        present = self._program.snapshot.virtual_routers if self._program.snapshot else ()
        known = {each.name for each in needs(present)}
        found = (each for each in needs(snapshot.virtual_routers) if each.kind is MachineNeedKind.COMMAND)
        return tuple(each for each in found if each.name not in known)

    def _prepared(self, snapshot: Snapshot, objections: tuple[AnswerProblem, ...]) -> Answer:
        if self._program.stopping:
            return bad(_STOPPING)
        if objections:
            return bad(*objections)
        self._pending = snapshot
        ours = self._program.snapshot
        changed = snapshot.virtual_routers != (ours.virtual_routers if ours else ())
        return good(changed=changed, generation=None)

    def _commit(self, question: Question) -> Answer | DeferredAnswer:
        number = question.integer("snapshot")
        pending, self._pending = self._pending, None
        if self._committing is not None and self._committing[0] == number:
            return self._committing[1]
        ours = self._program.snapshot
        if self._committing is None and ours is not None and ours.number == number:
            return good(snapshot=number)
        if pending is None or pending.number != number:
            pending = snapshots.proposed(self._paths, number)
        return self._begin_commit(pending)

    def _begin_commit(self, snapshot: Snapshot) -> DeferredAnswer:
        under_way = self._committing = (snapshot.number, DeferredAnswer())

        def ended(outcome: OpeningOutcome) -> None:
            self._end_commit(under_way)
            done = outcome is OpeningOutcome.DONE
            under_way[1].resolve(good(snapshot=snapshot.number) if done else bad(_STOPPING))

        try:
            self._program.apply(snapshot, time.monotonic(), then=ended)
        except Exception:
            self._end_commit(under_way)  # the next command retries
            raise
        return under_way[1]

    def _end_commit(self, ended: tuple[int, DeferredAnswer]) -> None:
        if self._committing is ended:
            self._committing = None

    def _abort(self, question: Question) -> Answer:
        if self._pending is not None and self._pending.number == question.integer("snapshot"):
            self._pending = None
        return good()

    def _move(self, question: Question) -> Answer | DeferredAnswer:
        name = question.text("name")
        found = self._program.groups.find(name)
        if found is None:
            return bad(f"no virtual IP {name!r} is configured")
        group, instance = found
        if instance.election.state is not RouterState.ACTIVE:
            return bad(f"{name} is not active here: it is {instance.election.state.value}")
        answer = self._program.reports.wait_for_move(name)
        group.move(time.monotonic())
        return answer

    def _take_part(self, question: Question) -> DeferredAnswer:
        """Leave all virtual routers, or take part in them again; repeating the command is no error."""
        answer = DeferredAnswer()

        def ended(outcome: OpeningOutcome) -> None:
            answer.resolve(good() if outcome is OpeningOutcome.DONE else bad(_STOPPING))

        self._program.take_part(time.monotonic(), wanted=question.flag("wanted"), then=ended)
        return answer

    def _take_over(self, _: Question) -> Answer:
        """Send a successor the state of the routers, and continue; a stopping program hands over to peers."""
        if self._program.stopping:
            return vrrp_takeover.leaving()
        return good(routers=vrrp_takeover.encode(map(takeover_state, self._program.groups.instances)))

    def _taken_over(self, _: Question) -> Answer:
        """End at once: the successor serves."""
        self._program.end_for_successor()
        return good()

    def _reclaim(self, question: Question) -> Answer:
        name = question.text("name")
        found = self._program.groups.find(name)
        if found is None:
            return bad(f"no virtual IP {name!r} is configured")
        group, instance = found
        yielded = instance.election.yielded
        group.reclaim(time.monotonic())
        return good(name=name, changed=yielded)

    def _informed(self, question: Question) -> Answer:
        """Note that a program, `linger` or `forward`, has learned what connections of a virtual IP exist."""
        name = question.text("name")
        found = self._program.groups.find(name)
        if found is None:
            return bad(f"no virtual IP {name!r} is configured")
        group, instance = found
        # A `linger` of an earlier release does not say who it is.
        group.inform(instance, question.optional_text("by") or LINGER, time.monotonic())
        return good(name=name)


def _users(routers: Iterable[VirtualRouter]) -> tuple[str, ...]:
    """Return the users that scripts and notify commands are run as."""
    named = {
        user for router in routers for user in (router.notify.user, *(each.user for each in router.track))
    }
    return tuple(sorted(user for user in named if user))


def _unknown(users: Iterable[str]) -> Iterator[AnswerProblem]:
    for each in filter(_is_unknown, users):
        yield AnswerProblem(message=f"there is no user {each!r} to run commands as")


def _missing(commands: Iterable[MachineNeed]) -> Iterator[AnswerProblem]:
    for each in commands:
        if why := objection(each):
            yield AnswerProblem(message=why, path=dotted(each.path))


def _is_unknown(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return True
    except OSError:  # the directory does not answer: the tracker reports it when it matters
        return False
    return False
