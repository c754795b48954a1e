"""Events of servers: from the programs `health`, `discover` and `stats`, and from notifications."""

from collections.abc import Mapping
from typing import Final

from appliance.core.log_events.log_event import REPORT, SEE_SUPPORT, LogEvent

EVENTS: Final[Mapping[str, LogEvent]] = {
    "access-denied": LogEvent(
        "a client sent a wrong password for the page or the metrics",
        "if `client` is yours, give it the password of `stats.auth`; else narrow `stats.allow`",
    ),
    "api-failed": LogEvent(
        "the cluster's API does not answer `discover` as expected: pools keep their servers",
        "`appliance discover` shows the requests; check the token's rights, the address, and `detail`",
    ),
    "ca-file-kept": LogEvent(
        "a file of CA certificates cannot be read: checks use those that were read last",
        "fix the file; it is read again automatically",
    ),
    "check-crashed": LogEvent("a check hit a bug; the server keeps its state until the next one", REPORT),
    "check-impossible": LogEvent(
        "this machine could not run the check, so it has no result: the server keeps its state",
        "read `reason`: descriptors, memory, a missing file; `appliance check --here`",
    ),
    "discover-failed": LogEvent("`discover` hit a bug; it continues, and pools keep their servers", REPORT),
    "doubts-not-heard": LogEvent(
        "workers cannot report failed connects to `health`: only checks find a server that is down",
        "check that the runtime directory has room and belongs to the appliance's user",
    ),
    "found-not-taken": LogEvent(
        "`reload` refused the discovered servers: pools keep those they have",
        "read `reason`; `appliance reload --dry-run` shows the error",
    ),
    "found-not-written": LogEvent(
        "the discovered servers cannot be saved for the next start",
        "make room in the state directory, or give the appliance's user write permission there",
    ),
    "history-damaged": LogEvent(
        "the file behind the page's graphs was damaged: it was set aside, and the graphs start again",
        f"remove the file in `aside`, and check the disk; {SEE_SUPPORT}",
    ),
    "look-failed": LogEvent("`stats` hit a bug while it collected figures; it shows the last ones", REPORT),
    "notify-crashed": LogEvent(
        "a notification to a target of `notify` hit a bug; later ones are sent", REPORT
    ),
    "notify-failed": LogEvent(
        "a target of `notify` was not reached, or its command failed; with `again` it is retried",
        "read `reason`; check the target's address, its secret files, and whether it listens",
    ),
    "operator-state-kept": LogEvent(
        "a server is in drain or maint because an operator set it before the restart",
        "`appliance ready POOL/SERVER` when it should serve again",
    ),
    "operator-states-not-kept": LogEvent(
        "states that operators set are lost at the next restart of `health`",
        "make room in the state directory, or give the appliance's user write permission there",
    ),
    "operator-states-unreadable": LogEvent(
        "the file of drain and maint was damaged: it was set aside, the last known states apply",
        "compare `appliance status` with what you want; set it again with `appliance drain`, `maint`"
        " and `ready`",
    ),
    "operator-weight-kept": LogEvent(
        "a server has a weight that an operator set before the restart, not the configured one",
        "`appliance weight POOL/SERVER 100%` restores the configured weight",
    ),
    "operator-weights-not-kept": LogEvent(
        "weights that operators set are lost at the next restart of `health`",
        "make room in the state directory, or give the appliance's user write permission there",
    ),
    "operator-weights-unreadable": LogEvent(
        "the file of weights was damaged: it was set aside, the last known weights apply",
        "compare `appliance status` with what you want; set it again with `appliance weight`",
    ),
    "publishing-crashed": LogEvent("`health` hit a bug while it published its results, and restarts", REPORT),
    "server-down": LogEvent(
        "`fall` checks in a row have failed: the server gets no new connections",
        "`appliance why POOL/SERVER` shows the result of the last check",
    ),
    "server-unreachable": LogEvent(
        "a server that was already down no longer answers at all",
        "`appliance why POOL/SERVER` shows the result of the last check; check whether the machine runs",
    ),
    "servers-held": LogEvent(
        "the API shows fewer servers than before, probably by its own fault: they are kept",
        "`appliance discover` shows why; the hold ends by itself, or when the API shows them again",
    ),
    "state-not-kept": LogEvent(
        "a file of the state directory cannot be written: its content is lost at the next start",
        "make room there, or give the appliance's user write permission; `reason` names the file",
    ),
    "stats-socket-failed": LogEvent(
        "`stats` cannot listen on `stats.socket`; it retries every second",
        "do what `error` asks; remove the file at `path`, or name another one",
    ),
    "stats-socket-not-accepted": LogEvent(
        "the program `stats` has no descriptors left for a connection: it waits",
        "stop the program that keeps connections to it open; traffic is not affected",
    ),
}
