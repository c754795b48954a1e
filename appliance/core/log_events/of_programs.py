"""Events of any program, of their start and end, of the log itself, and of `reload`."""

from collections.abc import Mapping
from typing import Final

from appliance.core.log_events.log_event import NOTHING, REPORT, SEE_SUPPORT, LogEvent

EVENTS: Final[Mapping[str, LogEvent]] = {
    "already-running": LogEvent(
        "another process of this program has the runtime directory: this one ends",
        f"{NOTHING} if it is gone at the next start; else end it: `fuser` on the file of `lock` names it",
    ),
    "board-not-written": LogEvent(
        "what a program publishes for others cannot be written: they see the last values",
        "make room in the runtime directory (a tmpfs: `df /run`)",
    ),
    "board-unreadable": LogEvent(
        "what an earlier run published was damaged: this one begins without it",
        f"{NOTHING}: checks and elections find it out anew",
    ),
    "cannot-start": LogEvent(
        "a program cannot use its runtime directory, and ends",
        "see that the directory of `path` exists, has room, and belongs to the appliance's user",
    ),
    "command-failed": LogEvent("a program met a bug while it answered or obeyed a command", REPORT),
    "config-warning": LogEvent(
        "the configuration is obeyed, and something in it is probably not what you want",
        "read `message`; `appliance check` shows it with file, line and column",
    ),
    "configuration-awaited": LogEvent(
        "there is no good configuration yet: nothing is served",
        "write it; `appliance check` says what is wrong with it",
    ),
    "converge-failed": LogEvent(
        "a program does not obey the accepted configuration yet: it is told again",
        "read `error`; `appliance status` shows the program",
    ),
    "events-crashed": LogEvent(
        "the keeper of events met a bug: `appliance events` shows only the newest", REPORT
    ),
    "events-not-kept": LogEvent(
        "events cannot be written to the state directory: they are lost with the next start",
        "make room there, or give the appliance's user the right to write",
    ),
    "group-not-let-in": LogEvent(
        "the members of `group` cannot use `appliance status` without root",
        "make the group (`groupadd`), or let the appliance start as root",
    ),
    "heartbeat-unseen": LogEvent(
        "a program cannot show that it lives: it is not restarted if it hangs",
        "make room in the runtime directory (a tmpfs: `df /run`)",
    ),
    "killing": LogEvent(
        "a second signal asked for an end at once: every program is killed, open sessions are cut",
        f"{NOTHING}: it was asked for; send one signal for an orderly end",
    ),
    "leftover-killed": LogEvent(
        "a program of an earlier run did not end, and was killed", f"{NOTHING}: it is put right"
    ),
    "leftover-of-another-user": LogEvent(
        "a program of an earlier run belongs to another user, and cannot be ended",
        "end the process `pid` as root",
    ),
    "leftover-program": LogEvent(
        "a program of an earlier run, whose supervisord was killed, is told to end",
        f"{NOTHING}: workers serve on, and are taken over",
    ),
    "lines-dropped": LogEvent(
        "`count` lines of the log were lost: the disk was full, or nobody read them",
        "make room where the log is; see that journald or the container's log driver runs",
    ),
    "lines-left-out": LogEvent(
        "`count` lines like the one before it were left out: it repeats without end",
        "see what the event `of` says",
    ),
    "lock-not-made": LogEvent(
        "`reload` cannot lock its place, and goes on: two of it might run for a moment",
        "make room in the runtime directory (a tmpfs: `df /run`)",
    ),
    "log-file-unusable": LogEvent(
        "the file of `log.file` cannot be written: lines go to `instead`",
        "make its directory, room there, or the right to write; it is tried again by itself",
    ),
    "predecessor-runs": LogEvent(
        "an older `reload` still ends a change: this one goes on without waiting longer",
        "`appliance status` shows whether all programs obey; `{supervisorctl} restart reload`",
    ),
    "program-exited": LogEvent(
        "a program ended though nobody told it to, and starts again; traffic goes on",
        f"read `reason`, and its lines before; {SEE_SUPPORT}",
    ),
    "program-failing": LogEvent(
        "a program ends soon after each start; it is started again after longer and longer pauses",
        "read `reason`: it is what the program wrote last; `appliance status` shows it too",
    ),
    "program-given-up": LogEvent(
        "a program did not stay up after many starts, and is not started any more",
        "put `reason` right, then `{supervisorctl} start NAME`",
    ),
    "program-hung": LogEvent(
        "a program showed no life for longer than `watchdog` and is killed; it starts again",
        f"look whether the machine has processor time left; {SEE_SUPPORT}",
    ),
    "reload-failed": LogEvent("a reload met a bug: nothing has changed", REPORT),
    "reload-given-up": LogEvent(
        "a reload that was refused in passing was tried again by itself, and no try came through",
        "put right what `errors` name: it is not in the files; then `appliance reload`",
    ),
    "reload-incomplete": LogEvent(
        "the configuration is accepted, and not all programs obey it yet: they are told again",
        "read `errors`; `appliance status` shows the program",
    ),
    "reload-line-unknown": LogEvent(
        "somebody wrote another line than `reload` to the reload socket",
        "see what writes there: the lines are in the documentation, page Reloading",
    ),
    "reload-not-counted": LogEvent(
        "the number of reloads in the metrics is too low after the next start",
        "make room in the state directory, or give the appliance's user the right to write there",
    ),
    "reload-refused": LogEvent(
        "the new configuration was refused for `errors`: nothing has changed, the last good one is obeyed",
        "put them right (`appliance check`), then `appliance reload`; with `again_in` it is tried by itself",
    ),
    "reload-socket-failed": LogEvent(
        "nothing listens at a reload socket; it is tried again every second",
        "do what `error` asks for; remove what is at `path`, or name another in `reload.sockets`",
    ),
    "reload-socket-not-accepted": LogEvent(
        "`reload` has no descriptors left for a connection: it waits",
        "close what holds connections to the reload socket open",
    ),
    "runs-as-root": LogEvent(
        "all programs have the capabilities of root: they could not be taken away",
        "start it with CAP_SETPCAP, by its unit, or as the user `appliance`",
    ),
    "runtime-directory-taken": LogEvent(
        "somebody has removed our lock, and another appliance took the runtime directory",
        "end one of the two, or give it another --runtime-dir",
    ),
    "snapshot-unreadable": LogEvent(
        "the accepted configuration on disk is damaged: the last good one is obeyed",
        "`appliance reload` writes it anew; look at the disk",
    ),
    "socket-gone": LogEvent(
        "somebody has removed supervisord's socket; it listens there again",
        "see that nothing cleans the runtime directory (tmpfiles.d, a cron job)",
    ),
    "start-failed": LogEvent(
        "a program cannot serve as it is configured; it is started again, and then left alone",
        "read `reason`, put it right, then `appliance reload`",
    ),
    "started-from-last-good": LogEvent(
        "the configuration has errors: the last one without is obeyed",
        "put `errors` right (`appliance check`), then `appliance reload`",
    ),
    "starts-not-counted": LogEvent(
        "the number of restarts in `appliance status` is too low",
        "make room in the runtime directory (a tmpfs: `df /run`)",
    ),
    "state-damaged": LogEvent(
        "a file of our own state was damaged: it was set aside, and the next best is used",
        "look at the disk; `appliance status` says what is obeyed now; remove the file of `aside`",
    ),
    "supervisor": LogEvent(
        "supervisord has something to say that is no event of its own",
        "read `message`; `{supervisorctl} status` shows the programs",
    ),
}
