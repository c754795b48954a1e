"""The program `health`: checks every server, and writes what it knows on the health board.

It is shared by all generations of all proxies and outlives their reloads. Killed and started again, it goes
on from the board that it finds, so that no server changes state by it.
"""

import gc
import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Final

import gevent
from gevent.event import Event as Signal
from structlog.typing import FilteringBoundLogger

from appliance.core.checks.checked_servers import (
    CheckedServer,
    CheckedServers,
    Key,
    UnknownServerError,
)
from appliance.core.checks.health_record import record
from appliance.core.checks.server_health import HealthEvent, ServerHealth
from appliance.model.paths import Paths
from appliance.model.server_states import AdminState, ServerState
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.boards.boards import BoardError, BoardReader, BoardWriter
from appliance.net.boards.health_publisher import HealthPublisher
from appliance.net.boards.hub_heartbeat import HubHeartbeat
from appliance.net.control.sockets import Call, ControlServer
from appliance.net.files import lock_files, operator_states, snapshots, state_files
from appliance.net.files.operator_states import OperatorStatesError
from appliance.net.logging import log as logs
from appliance.net.probing.connect_failures import ConnectFailureSocket
from appliance.net.probing.probe import ProbeImpossible
from appliance.net.probing.resolver import Resolver
from appliance.net.probing.server_probe import ServerProbe
from appliance.net.probing.tls_contexts import AuthorityError, TlsContexts
from appliance.net.process.signals import survive
from appliance.programs.accepted_log import AcceptedLog
from appliance.wire.boards.health_board import BoardFormatError, ServerHealthRecord, decode
from appliance.wire.lines.connect_failure import ConnectFailure
from appliance.wire.lines.control import Answer, AnswerProblem, bad, good
from appliance.wire.literal import is_literal

PROGRAM: Final = "health"
_CRASH_PAUSE: Final = 5.0
_COLLECT: Final = (20_000, 20, 20)  # checks leave no cycles behind, so looking for them often is for nothing


class HealthProgram:
    """Checks, board and commands, from the snapshot that was accepted last.

    `stop` is set, and `crashed` true, when the program is of no use any more.
    """

    def __init__(
        self,
        paths: Paths,
        log: FilteringBoundLogger,
        *,
        records: tuple[ServerHealthRecord, ...],
        stop: Signal,
    ) -> None:
        self._paths = paths
        self._log = log
        self._stop_program = stop
        self.crashed = False
        self._started_at = time.time()
        self._not_kept: dict[str, str] = {}
        self._checked = CheckedServers(admins=self._operator_states(records))
        self._contexts = TlsContexts(self._authority_trouble)
        self._resolver = Resolver(self._moved)
        self._loops: dict[Key, gevent.Greenlet] = {}
        self._pending: Snapshot | None = None
        self._impossible: dict[Key, str] = {}
        self._verbose = False
        self._publisher = HealthPublisher(
            BoardWriter(paths.health_board),
            self._record,
            on_trouble=self._board_trouble,
            on_fault=self._publishing_ended,
        )
        accepted = snapshots.accepted(self._paths, self._log)
        if accepted is not None:
            self._apply(accepted, records)
        commands = {
            "status": self._status,
            "prepare": self._prepare,
            "commit": self._commit,
            "abort": self._abort,
            "set-state": self._set_state,
        }
        self._control = ControlServer(
            paths.control(PROGRAM), commands, on_error=self._command_failed, for_readers={"status"}
        )
        self._doubts = ConnectFailureSocket(
            paths.health_connect_failures, self._doubt, on_trouble=self._doubts_trouble
        )

    def close(self) -> None:
        """Stop checking and answering; what was published stays readable."""
        self._control.close()
        self._doubts.close()
        self._resolver.close()
        gevent.killall(list(self._loops.values()))
        self._publisher.close()

    # Checks

    def _apply(self, snapshot: Snapshot, records: tuple[ServerHealthRecord, ...] = ()) -> None:
        now = time.monotonic()
        applied = self._checked.apply(snapshot, now=now)
        self._checked.restore(records, now=now, wall=time.time())
        self._log = logs.obey(PROGRAM, snapshot.log)
        self._verbose = snapshot.log.level == "debug"
        for key in applied.stopped:
            self._stop(key)
        self._publisher.replace(self._checked.servers, snapshot=snapshot.number)
        self._resolver.want(
            _hosts(self._checked.servers.values()), known=_resolved(self._checked.servers.values())
        )
        for key in applied.started:
            self._start(key)
            self._remind(self._checked.servers[key])
        for key, event in applied.events:
            self._report(self._checked.servers[key], event)
        # A new server of a name that is followed already would hear nothing of it until the name moves.
        for name, address in self._resolver.addresses().items():
            self._moved(name, address)

    def _remind(self, member: CheckedServer) -> None:
        """Say that an operator's earlier word holds: somebody may wonder why the server gets no traffic."""
        if member.health.admin is not AdminState.READY:
            state = member.health.admin.name.lower()
            self._log.warning("operator-state-kept", pool=member.pool, server=member.server.name, state=state)

    def _start(self, key: Key) -> None:
        member = self._checked.servers[key]
        if member.health.deadline is not None:
            self._loops[key] = gevent.spawn(self._follow, member, member.health)

    def _stop(self, key: Key) -> None:
        self._impossible.pop(key, None)
        loop = self._loops.pop(key, None)
        if loop is not None:
            loop.kill(block=False)

    def _restart(self, key: Key) -> None:
        self._stop(key)
        self._start(key)

    def _follow(self, member: CheckedServer, health: ServerHealth) -> None:
        """Do what is due for one server, for as long as something will be."""
        check = member.server.check
        probe = (
            ServerProbe(member.server, check, contexts=self._contexts, resolver=self._resolver)
            if check
            else None
        )
        while (deadline := health.deadline) is not None:
            gevent.sleep(max(deadline - time.monotonic(), 0))
            now = max(time.monotonic(), deadline)
            if health.tick(now):
                self._publisher.touch(member.key, changed=True)
            if probe is None or health.next_check is None or health.next_check > now:
                continue
            try:
                self._check(member, health, probe)
            except Exception:  # noqa: BLE001  # a bug must not leave a server unchecked for ever; it is logged
                self._log.exception("check-crashed", pool=member.pool, server=member.server.name)
                gevent.sleep(_CRASH_PAUSE)

    def _check(self, member: CheckedServer, health: ServerHealth, probe: ServerProbe) -> None:
        started = time.monotonic()
        health.check_started(started)
        try:
            outcome = probe.run()
        except ProbeImpossible as error:
            health.check_not_made(started=started, now=time.monotonic())
            self._not_checked(member, str(error))
            return
        self._impossible.pop(member.key, None)
        # What was asked of a server that has since moved or gone is nobody's answer.
        if member.health is not health or self._checked.servers.get(member.key) is not member:
            return
        event = health.check_ended(outcome, started=started, now=time.monotonic())
        self._publisher.touch(member.key, changed=event is not None)
        if event is not None:
            self._report(member, event)
        elif self._verbose:
            self._log.debug("check", **self._facts(member))

    def _doubt(self, doubt: ConnectFailure) -> None:
        """Check a server now that clients could not connect to, unless that has just been done."""
        member = self._checked.servers.get((doubt.pool, doubt.server))
        if member is None or not member.health.connect_failed(now=time.monotonic()):
            return
        # It sleeps: a check that is running has no later deadline than now.
        self._restart(member.key)
        self._log.debug("server-doubted", pool=doubt.pool, server=doubt.server)

    def _doubts_trouble(self, reason: str) -> None:
        path = str(self._paths.health_connect_failures)
        if reason:
            self._log.warning("doubts-not-heard", path=path, reason=reason)
        else:
            self._log.debug("doubts-heard", path=path)

    def _not_checked(self, member: CheckedServer, reason: str) -> None:
        """Say once what keeps servers from being checked, however many they are."""
        if reason not in self._impossible.values():
            self._log.error("check-impossible", pool=member.pool, server=member.server.name, reason=reason)
        self._impossible[member.key] = reason

    def _board_trouble(self, reason: str) -> None:
        board = str(self._paths.health_board)
        if reason:
            self._not_kept[board] = reason
            self._log.error("board-not-written", board=str(self._paths.health_board), reason=reason)
        else:
            self._not_kept.pop(board, None)
            self._log.info("board-written", board=str(self._paths.health_board))

    def _publishing_ended(self, error: BaseException | None) -> None:
        """End the program: without its board it is of no use, and the next one goes on from that board."""
        self._log.error("publishing-crashed", exc_info=error)
        self.crashed = True
        self._stop_program.set()

    def _authority_trouble(self, file: str, reason: str) -> None:
        if reason:
            self._log.error("ca-file-kept", file=file, reason=reason)
        else:
            self._log.info("ca-file-readable", file=file)

    def _moved(self, name: str, address: str) -> None:
        """Take the address that a name stands for now, for every server of that name."""
        now = time.monotonic()
        for key, member in self._checked.servers.items():
            if member.server.host != name:
                continue
            before, health = member.host, member.health
            if self._checked.set_host(key, address, now=now):
                self._publisher.touch(key, changed=True)
                self._log.info(
                    "server-address", pool=key[0], server=key[1], name=name, address=address, before=before
                )
            if member.health is not health:
                self._restart(key)

    # What is said

    def _record(self, key: Key, now: float, wall: float) -> ServerHealthRecord:
        return record(self._checked.servers[key], now=now, wall=wall)

    def _report(self, member: CheckedServer, event: HealthEvent) -> None:
        say = self._log.warning if event in (HealthEvent.DOWN, HealthEvent.UNREACHABLE) else self._log.info
        say(event.value, **self._facts(member))

    def _facts(self, member: CheckedServer) -> dict[str, object]:
        health = member.health
        up, count = self._checked.up(member.pool)
        return {
            "pool": member.pool,
            "server": member.server.name,
            "result": health.last.result.value,
            "status": health.last.status,
            "duration": round(health.last.duration, 6),
            "detail": health.last.detail,
            "streak": health.streak,
            "up": up,
            "servers": count,
        }

    def _command_failed(self, command: str, error: Exception) -> None:
        self._log.error("command-failed", command=command, exc_info=error)

    # Commands

    def _status(self, _: Call) -> Answer:
        states = [member.health.state for member in self._checked.servers.values()]
        return good(
            program=PROGRAM,
            pid=os.getpid(),
            started_at=self._started_at,
            snapshot=self._checked.snapshot.number if self._checked.snapshot else 0,
            pending=self._pending.number if self._pending else None,
            servers={state.value: states.count(state) for state in ServerState},
            unresolved=self._resolver.unresolved(),
            not_kept=self._not_kept,
        )

    def _prepare(self, call: Call) -> Answer:
        snapshot = snapshots.proposed(self._paths, call.question.integer("snapshot"))
        problems = self._authority_problems(snapshot)
        if problems:
            return bad(*problems)
        self._pending = snapshot
        return good(changed=self._checked.differs(snapshot), generation=None)

    def _commit(self, call: Call) -> Answer:
        number = call.question.integer("snapshot")
        if self._checked.snapshot is None or self._checked.snapshot.number != number:
            pending, self._pending = self._pending, None
            if pending is None or pending.number != number:
                pending = snapshots.proposed(self._paths, number)
            self._apply(pending)
            self._log.info("configuration-applied", configuration=number, servers=len(self._checked.servers))
        return good(snapshot=number)

    def _abort(self, call: Call) -> Answer:
        number = call.question.integer("snapshot")
        if self._pending is not None and self._pending.number == number:
            self._pending = None
        return good()

    def _set_state(self, call: Call) -> Answer:
        question = call.question
        try:
            admin = AdminState[question.text("state").upper()]
            member = self._checked.find(question.text("pool"), question.text("server"))
        except KeyError:
            return bad(f"unknown state {question.text('state')!r}; known: ready, drain, maint")
        except UnknownServerError as error:
            return bad(str(error))
        self._keep(self._checked.admins_with(member.key, admin))
        event = self._checked.set_admin(*member.key, admin, now=time.monotonic())
        if event is not None:
            self._restart(member.key)
            self._publisher.touch(member.key, changed=True)
            self._report(member, event)
        done = {"pool": member.pool, "server": member.server.name, "state": admin.name.lower()}
        path = str(self._paths.operator_states)
        reason = self._not_kept.get(path)
        warned = {"not_kept": f"{path}: {reason}"} if reason else {}
        return good(**done, changed=event is not None, **warned)

    # Files

    def _operator_states(self, records: tuple[ServerHealthRecord, ...]) -> dict[Key, AdminState]:
        try:
            return operator_states.load(self._paths.operator_states)
        except OperatorStatesError as error:
            self._log.error(
                "operator-states-unreadable",
                reason=str(error),
                aside=str(state_files.set_aside(self._paths.operator_states)),
            )
            known: dict[Key, AdminState] = {
                (each.pool, each.server): each.admin for each in records if each.admin is not AdminState.READY
            }
            self._keep(known)
            return known

    def _keep(self, admins: Mapping[Key, AdminState]) -> None:
        """Have what operators have said outlive this program; where it cannot be, say so."""
        path = str(self._paths.operator_states)
        try:
            operator_states.save(self._paths.operator_states, admins)
            self._not_kept.pop(path, None)
        except OperatorStatesError as error:
            self._not_kept[path] = str(error).removeprefix(f"{path}: ")
            self._log.error("operator-states-not-kept", reason=str(error))

    def _authority_problems(self, snapshot: Snapshot) -> list[AnswerProblem]:
        users: dict[str, str] = {}
        for pool in snapshot.pools:
            for server in pool.servers:
                if server.check is not None and server.check.verify is not None:
                    users.setdefault(server.check.verify, f"{pool.name}/{server.name}")
        found = []
        for file, user in users.items():
            try:
                self._contexts.inspect(file)
            except AuthorityError as error:
                found.append(AnswerProblem(message=f"{user}: {error}"))
        return found


def last_records(paths: Paths, log: FilteringBoundLogger) -> tuple[ServerHealthRecord, ...]:
    """Return what an earlier process published last, nothing where there is no board."""
    try:
        with BoardReader(paths.health_board) as board:
            payload = board.read()
        return decode(payload).servers if payload else ()
    except (BoardError, BoardFormatError) as error:
        if paths.health_board.exists():
            log.warning("board-unreadable", reason=str(error))
        return ()


def main() -> int:
    """Run until TERM or INT; 1 after a crash, or when another health program has this runtime directory."""
    paths = Paths.from_environment(os.environ)
    log = AcceptedLog(PROGRAM, paths).logger
    gevent.spawn(logs.limiter().follow, gevent.sleep)
    stop = Signal()
    survive(signal.SIGUSR1, signal.SIGUSR2)
    for number in (signal.SIGTERM, signal.SIGINT):
        gevent.signal_handler(number, stop.set)
    lock = paths.runtime / f"{PROGRAM}.lock"
    try:
        held = lock_files.hold(lock)
    except OSError as error:
        log.error("cannot-start", path=str(lock), reason=error.strerror or str(error))  # noqa: TRY400  # no bug
        return 1
    if held is None:
        log.error("already-running", lock=str(lock))
        return 1
    heartbeat = HubHeartbeat(paths.heartbeat(PROGRAM), log)
    program = HealthProgram(paths, log, records=last_records(paths, log), stop=stop)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT)
    stop.wait()
    if program.crashed:
        return 1
    program.close()
    heartbeat.close()
    return 0


def _hosts(members: Iterable[CheckedServer]) -> set[str]:
    hosts = {member.server.host for member in members}
    return hosts | {
        member.server.check.address
        for member in members
        if member.server.check and member.server.check.address
    }


def _resolved(members: Iterable[CheckedServer]) -> dict[str, str]:
    return {
        member.server.host: member.host
        for member in members
        if member.host and not is_literal(member.server.host)
    }


if __name__ == "__main__":
    sys.exit(main())
