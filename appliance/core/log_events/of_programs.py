"""Events of any program: its start and end, the log itself, `reload`, take-overs of the whole appliance."""

from collections.abc import Mapping
from typing import Final

from appliance.core.log_events.log_event import NOTHING, REPORT, SEE_SUPPORT, LogEvent

EVENTS: Final[Mapping[str, LogEvent]] = {
    "already-running": LogEvent(
        "another process of this program holds the runtime directory: this one exits",
        f"{NOTHING}, if that process is gone at the next start; else stop it: `fuser` on the file in"
        " `lock` shows it",
    ),
    "appliance-taken-over": LogEvent(
        "this appliance has taken over from the one with `version` and `pid`, with all that was open",
        f"{NOTHING}: a second `appliance run` requested it",
    ),
    "board-not-written": LogEvent(
        "a program cannot publish its state for the others: they see the last values",
        "make room in the runtime directory (a tmpfs: `df /run`)",
    ),
    "board-unreadable": LogEvent(
        "the state that an earlier run published was damaged: this run starts without it",
        f"{NOTHING}: checks and elections establish it again",
    ),
    "cannot-be-taken-over": LogEvent(
        "this appliance cannot listen for a second `appliance run`, which will not find it",
        "make room in the runtime directory (a tmpfs: `df /run`)",
    ),
    "cannot-start": LogEvent(
        "a program cannot use its runtime directory, and exits",
        "check that the directory in `path` exists, has room, and belongs to the appliance's user",
    ),
    "command-failed": LogEvent("a program hit a bug while it handled a command", REPORT),
    "config-warning": LogEvent(
        "the configuration is in use, but it probably contains a mistake",
        "read `message`; `appliance check` shows it with file, line and column",
    ),
    "configuration-awaited": LogEvent(
        "there is no valid configuration yet: nothing is served",
        "write it; `appliance check` shows its errors",
    ),
    "converge-failed": LogEvent(
        "a program does not use the accepted configuration yet: the change is retried",
        "read `error`; `appliance status` shows the program",
    ),
    "events-crashed": LogEvent(
        "the keeper of events hit a bug: `appliance events` shows only the newest", REPORT
    ),
    "events-not-kept": LogEvent(
        "events cannot be written to the state directory: they are lost at the next start",
        "make room there, or give the appliance's user write permission",
    ),
    "group-not-let-in": LogEvent(
        "the members of `group` cannot use `appliance status` without root",
        "create the group (`groupadd`), or start the appliance as root",
    ),
    "heartbeat-unseen": LogEvent(
        "a program cannot write its heartbeat: it is not restarted if it hangs",
        "make room in the runtime directory (a tmpfs: `df /run`)",
    ),
    "killing": LogEvent(
        "a second signal requested an immediate shutdown: every program is killed, open sessions are cut",
        f"{NOTHING}: this was requested; send one signal for an orderly shutdown",
    ),
    "leftover-killed": LogEvent(
        "a program of an earlier run did not exit, and was killed", f"{NOTHING}: this is resolved"
    ),
    "leftover-of-another-user": LogEvent(
        "a program of an earlier run belongs to another user, and cannot be stopped",
        "stop the process `pid` as root",
    ),
    "leftover-program": LogEvent(
        "a program of an earlier run, whose supervisord was killed, is asked to exit",
        f"{NOTHING}: its workers continue to serve, and are taken over",
    ),
    "lines-dropped": LogEvent(
        "`count` lines of the log were lost: the disk was full, or nothing read them",
        "make room where the log is; check that journald or the container's log driver runs",
    ),
    "lines-left-out": LogEvent(
        "`count` lines like the one before were left out, because they repeat endlessly",
        "look up the event that `of` names",
    ),
    "lock-not-made": LogEvent(
        "`reload` cannot create its lock, and continues: two of them might run for a moment",
        "make room in the runtime directory (a tmpfs: `df /run`)",
    ),
    "log-file-unusable": LogEvent(
        "the file of `log.file` cannot be written: lines go to `instead`",
        "create its directory, make room there, or give write permission; it is retried automatically",
    ),
    "predecessor-runs": LogEvent(
        "an older `reload` is still completing a change: this one no longer waits for it",
        "`appliance status` shows whether all programs use the configuration; `{supervisorctl}"
        " restart reload`",
    ),
    "predecessor-unknown": LogEvent(
        "supervisord cannot read what `run` passed to it about the previous appliance", REPORT
    ),
    "program-exited": LogEvent(
        "a program exited unexpectedly, and is restarted; traffic continues",
        f"read `reason`, and the program's lines before it; {SEE_SUPPORT}",
    ),
    "program-failing": LogEvent(
        "a program exits soon after each start; the pauses between restarts grow",
        "read `reason`, the program's last output; `appliance status` shows it too",
    ),
    "program-given-up": LogEvent(
        "a program exited after each of many starts, and is no longer restarted",
        "fix the cause in `reason`, then `{supervisorctl} start NAME`",
    ),
    "program-hung": LogEvent(
        "a program without a heartbeat for longer than `watchdog` is killed and restarted",
        f"check whether the machine has processor time left; {SEE_SUPPORT}",
    ),
    "relieved": LogEvent(
        "the appliance with `version` and `pid` is in charge: this one exits with its last session",
        f"{NOTHING}: a second `appliance run` requested it",
    ),
    "reload-failed": LogEvent("a reload hit a bug: nothing has changed", REPORT),
    "reload-given-up": LogEvent(
        "a reload that was refused for now was retried automatically, and no retry succeeded",
        "fix the causes in `errors`, which are not in the files; then `appliance reload`",
    ),
    "reload-incomplete": LogEvent(
        "the configuration is accepted, but not all programs use it yet: the change is retried",
        "read `errors`; `appliance status` shows the program",
    ),
    "reload-line-unknown": LogEvent(
        "`reload` received an unknown line on its socket",
        "find the program that writes there: the lines are in the documentation, page Reloading",
    ),
    "reload-not-counted": LogEvent(
        "the number of reloads in the metrics will be too low after the next start",
        "make room in the state directory, or give the appliance's user write permission there",
    ),
    "reload-refused": LogEvent(
        "the new configuration was refused for `errors`: nothing has changed, the last good one stays in use",
        "fix them (`appliance check`), then `appliance reload`; with `again_in` it is retried automatically",
    ),
    "reload-socket-failed": LogEvent(
        "`reload` cannot listen on a reload socket; it retries every second",
        "do what `error` asks; remove the file at `path`, or name another in `reload.sockets`",
    ),
    "reload-socket-not-accepted": LogEvent(
        "`reload` has no descriptors left for a connection: it waits",
        "stop the program that keeps connections to the reload socket open",
    ),
    "runs-as-root": LogEvent(
        "all programs have the capabilities of root: they could not be dropped",
        "start it with CAP_SETPCAP, by its unit, or as the user `appliance`",
    ),
    "runtime-directory-taken": LogEvent(
        "our lock was removed, and another appliance took the runtime directory",
        "stop one of the two, or give it another --runtime-dir",
    ),
    "snapshot-not-restored": LogEvent(
        "the configuration from before a failed take-over cannot be written again",
        "make room in the runtime directory, then `appliance reload`",
    ),
    "snapshot-unreadable": LogEvent(
        "the accepted configuration on disk is damaged: the last good one is used",
        "`appliance reload` writes it again; check the disk",
    ),
    "socket-gone": LogEvent(
        "supervisord's socket was removed; it has been created again",
        "check that nothing cleans the runtime directory (tmpfiles.d, a cron job)",
    ),
    "standing-by": LogEvent(
        "the appliance with `version` and `pid` takes over: this one continues if that fails",
        f"{NOTHING}: a second `appliance run` requested it",
    ),
    "start-failed": LogEvent(
        "a program cannot serve as configured; it is restarted, and then given up",
        "fix the cause in `reason`, then `appliance reload`",
    ),
    "started-from-last-good": LogEvent(
        "the configuration has errors: the last good one is used",
        "fix the `errors` (`appliance check`), then `appliance reload`",
    ),
    "starts-not-counted": LogEvent(
        "the number of restarts in `appliance status` is too low",
        "make room in the runtime directory (a tmpfs: `df /run`)",
    ),
    "state-damaged": LogEvent(
        "a state file of the appliance was damaged: it was set aside, and the next best is used",
        "check the disk; `appliance status` shows the configuration in use; remove the file in `aside`",
    ),
    "supervisor": LogEvent(
        "a message of supervisord that has no event of its own",
        "read `message`; `{supervisorctl} status` shows the programs",
    ),
    "take-over-failed": LogEvent(
        "an appliance failed to start, and the one that ran before continues",
        "read `reason`, and the log of the one that failed; then start it again",
    ),
    "take-over-not-noted": LogEvent(
        "`appliance status` will not show the result of a take-over; `appliance events` does",
        "make room in the runtime directory (a tmpfs: `df /run`)",
    ),
    "upgrade-failed": LogEvent(
        "the new release did not request the take-over; this one continues",
        "read `reason`, fix the cause, then `appliance upgrade` again",
    ),
    "upgrading": LogEvent(
        "another release was started by `command`, and will take over",
        f"{NOTHING}: `appliance upgrade` or SIGUSR2 requested it",
    ),
}
