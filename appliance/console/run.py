"""`appliance run`: checks the configuration, writes the snapshot, becomes supervisord in the foreground."""

import contextlib
import importlib
import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

import click

from appliance.console.output.error_positions import located
from appliance.console.output.refusal import Refused
from appliance.core.balancing.worker_shares import Shortage, shortage
from appliance.core.program_table import CONFIGURED, PROGRAMS, needed, variable
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files import readers, take_over_note
from appliance.net.files.packaged import packaged
from appliance.net.logging.journal import SyslogSeverity, levelled
from appliance.net.logging.log import Logger, configure
from appliance.net.logging.output import STDERR
from appliance.net.privileges import capabilities, drop_privileges, private_directory, socket_directories
from appliance.net.process import limits, python
from appliance.net.process.child_call import ChildCall
from appliance.net.process.python import NO_USER_SITE
from appliance.reload import boot
from appliance.wire.lines.control import AnswerProblem, as_values
from appliance.wire.lines.succession import (
    COMMAND,
    FORMER_INSTANCE,
    INSTANCE,
    LOCK,
    OTHER_GOES_ON,
    PREDECESSOR,
    REFUSALS,
    Predecessor,
    encode_command,
    encode_predecessor,
)

if TYPE_CHECKING:
    from appliance.supervisor.succession.incumbent import Incumbent

_SUPERVISOR: Final = "appliance.programs.supervisor"
_LONGEST_REFUSAL = 4096  # bytes: what a pipe takes in one write
_INCLUDE = "APPLIANCE_SUPERVISOR_INCLUDE"


@click.command(
    epilog="Example: appliance --config ./appliance.yaml --runtime-dir ~/lb/run --state-dir ~/lb/state run"
)
@click.option(
    "--user",
    metavar="NAME",
    envvar=drop_privileges.USER_VARIABLE,
    show_envvar=True,
    help="User to run as when started by root.  [default: the user appliance if it exists, else root "
    "without the rights that no program needs]",
)
@click.option(
    "--take-over/--no-take-over",
    default=None,
    help="Whether to take over from an appliance that runs in this runtime directory.  [default: yes,"
    " unless started from a terminal]",
)
@click.pass_obj
def run(paths: Paths, *, user: str | None, take_over: bool | None) -> NoReturn:
    """Run the whole appliance in the foreground.

    If an appliance already runs in this runtime directory, the new one takes over its sockets, sessions,
    virtual IPs and verdicts, and the old one exits. To upgrade, start the new release; to go back, start the
    former one. If the new one cannot start (its configuration is rejected, a program does not come up), the
    old one continues, and the new one exits with code 3.

    Started as root, it switches to an ordinary user, and each program gets only the capabilities that it
    needs. The runtime and state directories must be writable for this user alone.

    TERM or Ctrl-C stops it within the drain time; a second signal stops it at once. USR1 stops it when the
    last session has ended, without a deadline. If the configuration has errors, it starts with the
    configuration that was accepted last, and logs that; without one, it prints every error and exits with
    code 1.

    With --haproxy, --keepalived, --reload-socket or `source`, another program writes the files and may need
    the reload socket first. The appliance then waits for the first valid files and serves nothing until they
    exist; `appliance status` shows what it waits for.
    """
    # They stay pending until supervisord handles them, which can stop the programs of an earlier one.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1))
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    refusals = _refusals()
    _become_user(user, paths)
    become_supervisor(_prepared(paths, take_over=take_over, refusals=refusals))


def _prepared(paths: Paths, *, take_over: bool | None, refusals: int | None) -> Mapping[str, str]:
    """Make the directories, the lock and the snapshot; return supervisord's environment."""
    own, incumbent = f"{os.getpid()}-{time.monotonic_ns():x}", None
    try:
        boot.make_directories(paths)
        asked = None if sys.stdin.isatty() and take_over is None else take_over is not False
        incumbent = _locked(paths, instance=own, take_over=bool(asked))
        boot.build_validator()
        # In a child, as it may have read root's files, and supervisord and its forks go on with our memory.
        choose = partial(boot.choose_beside if incumbent else boot.choose, paths)
        start = ChildCall(choose, expected=boot.BootError).result()
        refused = _let_readers_in(paths, start.snapshot.readers)
        not_kept = boot.write(paths, start)
        boot.remove_stale_sockets(paths)
    except boot.BootError as error:
        for problem in error.problems:
            complaint = located(problem, paths.config)
            click.echo(levelled(complaint, SyslogSeverity.ERROR, STDERR), err=True)
        click.echo(levelled(f"Next: {error.step}", SyslogSeverity.ERROR, STDERR), err=True)
        if refusals is not None:
            words = "; ".join(located(each, paths.config) for each in error.problems)
            os.write(refusals, words.encode(errors="replace")[:_LONGEST_REFUSAL])
        goes_on = incumbent is not None or isinstance(error, boot.TakenError)
        raise SystemExit(OTHER_GOES_ON if goes_on else 1) from error
    log = _announce(start, not_kept, paths)
    if refused:
        log.warning("group-not-let-in", group=start.snapshot.readers, reason=refused)
    os.environ.update({INSTANCE: own, COMMAND: encode_command(python.own_command())})
    if not incumbent:  # its programs clean up their state when they end
        take_over_note.remove(paths)
        _remove_leftovers(paths, start.snapshot, log)
    return environment(paths, start.snapshot)


def _remove_leftovers(paths: Paths, snapshot: Snapshot, log: Logger) -> None:
    """Remove what programs left that are no longer needed; the others remove their own, or continue with it.

    In a child: supervisord and its forks need nothing of what it imports, and can be imported meanwhile.
    """
    modules = [
        each.leftovers
        for each in PROGRAMS
        if each.leftovers and not each.needed(snapshot) and (each.trace is None or each.trace(paths).exists())
    ]
    removing = ChildCall(partial(_remove_each, modules, paths, log))
    importlib.import_module(_SUPERVISOR)
    removing.result()


def _remove_each(modules: Iterable[str], paths: Paths, log: Logger) -> None:
    for each in modules:
        importlib.import_module(each).remove_all(paths, log)


def _refusals() -> int | None:
    """Return the descriptor on which the supervisord that started us receives why we end."""
    named = os.environ.pop(REFUSALS, "")
    if not named.isdigit():
        return None
    try:
        os.set_inheritable(int(named), False)  # noqa: FBT003  # its only parameter
    except OSError:
        return None
    return int(named)


def _locked(paths: Paths, *, instance: str, take_over: bool) -> "Incumbent | None":
    """Hold the runtime directory; after a take-over by a copy of the lock of the appliance that stands by.

    Raises BootError. Values for supervisord are left in the environment.
    """
    os.environ[FORMER_INSTANCE] = ""
    try:
        os.environ[LOCK] = str(boot.lock(paths))
    except boot.TakenError:
        if not take_over:
            raise
    else:
        return None
    from appliance.console import start_alongside  # noqa: PLC0415  # for this case only

    found = start_alongside.ask(paths, instance=instance)
    for descriptor in (found.connection, found.lock):
        os.set_inheritable(descriptor, True)  # noqa: FBT003  # its only parameter
    left = Predecessor(
        connection=found.connection, pid=found.pid, version=found.party.version, instance=found.party.instance
    )
    os.environ[LOCK] = str(found.lock)
    os.environ[PREDECESSOR] = encode_predecessor(left)
    os.environ[FORMER_INSTANCE] = found.party.instance
    return found


def _become_user(user: str | None, paths: Paths) -> None:
    """Switch to the user of the programs before creating anything that they must read."""
    if os.geteuid() != 0:
        return
    try:
        drop_privileges.become(
            user or drop_privileges.standard_user(),
            owned=(paths.runtime, paths.state),
            before=partial(_open_early, paths),
            joined=partial(
                socket_directories.groups_to_join, ChildCall(partial(boot.wanted_sockets, paths)).result()
            ),
        )
    except drop_privileges.CannotBecomeError as error:
        raise Refused(
            str(error), step="name a user that exists with --user, or start it as that user"
        ) from error


def _open_early(paths: Paths, owner: int) -> None:
    """Give the group of the operator's file access to the runtime directory, as root.

    Later, as an ordinary user, chown(2) allows only groups that this user belongs to. A failure is not
    reported here but by the second attempt, after the whole file has been loaded.
    """
    group = ChildCall(partial(boot.wanted_readers, paths)).result()  # as when the configuration is chosen
    if group is None or private_directory.flaw(paths.runtime, owner=owner):
        return
    with contextlib.suppress(readers.ReadersRefused, OSError):
        paths.runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
        readers.let_in(paths.runtime, group, owner=owner)


def _let_readers_in(paths: Paths, group: str | None) -> str | None:
    """Give a group read access to the runtime directory, or none to anybody; return why it failed."""
    try:
        if group is None:
            readers.keep_out(paths.runtime)
        else:
            readers.let_in(paths.runtime, group, owner=os.geteuid())
    except readers.ReadersRefused as error:
        readers.keep_out(paths.runtime)
        return str(error)
    return None


def become_supervisor(settings: Mapping[str, str]) -> NoReturn:
    """Continue as supervisord, by what is imported already; where that cannot be, by an exec."""
    from appliance.net.starting import forked_program  # noqa: PLC0415  # gevent: a refusal comes without it

    command = python.command(_SUPERVISOR, "-n", "-c", str(packaged("supervisord.conf")))
    inherited = {name: value for name, value in os.environ.items() if name != NO_USER_SITE}
    whole = {**inherited, **settings}
    drop_privileges.gain_nothing()
    drop_privileges.settle()
    if forked_program.is_possible():
        importlib.import_module(_SUPERVISOR)
        forked_program.become(command, whole, descriptors=forked_program.inheritable())
    os.execve(command[0], command, whole)  # noqa: S606  # no shell is the point


def environment(paths: Paths, snapshot: Snapshot) -> Mapping[str, str]:
    """Return the environment variables that config/supervisord.conf refers to."""
    programs = needed(snapshot)
    starts = {variable("START", each): "true" if each in programs else "false" for each in CONFIGURED}
    stops = {
        variable("STOP_SECONDS", each.name): str(each.stop_alone or each.stop_seconds(snapshot))
        for each in PROGRAMS
        if each.stop_seconds
    }
    absolute = paths.absolute()
    return {
        **absolute.environment(),
        **starts,
        "APPLIANCE_PYTHON": sys.executable,
        # supervisord looks for a writable directory, and in a container without /tmp there is no other.
        "TMPDIR": str(absolute.runtime),
        **stops,
        _INCLUDE: os.environ.get(_INCLUDE, ""),
    }


def _announce(start: boot.Start, not_kept: Iterable[AnswerProblem], paths: Paths) -> Logger:
    log: Logger = configure("run", level=start.snapshot.log.level, form=start.snapshot.log.format)
    if start.snapshot.awaited:
        log.warning("configuration-awaited", errors=as_values(start.errors))
    elif start.errors:
        log.error("started-from-last-good", config=str(paths.config), errors=as_values(start.errors))
    for warning in as_values(start.warnings):
        log.warning("config-warning", **{"config": str(paths.config), **warning})
    for group, found in _short_of_files(start.snapshot):
        log.warning("open-files-low", group=group, **asdict(found))
    for each in start.damaged:
        log.error("state-damaged", reason=each.message)
    for each in not_kept:
        log.error("state-not-kept", reason=each.message)
    if capabilities.is_root():
        log.warning("runs-as-root", reason="every program has all capabilities: CAP_SETPCAP is missing")
    log.info(
        "starting",
        user=os.geteuid(),
        configuration=start.snapshot.number,
        programs=needed(start.snapshot),
        supervisorctl=paths.supervisorctl,
    )
    return log


def _short_of_files(snapshot: Snapshot) -> list[tuple[str, Shortage]]:
    """Return the group that lacks most open files, if any; the limit is the same for all of them."""
    files = limits.most_open_files()
    found = [
        (group.name, lack)
        for group in snapshot.proxied
        if (lack := shortage(group, workers=group.workers or limits.processors(), open_files=files))
    ]
    return sorted(found, key=lambda each: each[1].wanted)[-1:]
