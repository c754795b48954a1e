"""Events of servers: of the programs `health`, `discover` and `stats`, and of who is told."""

from collections.abc import Mapping
from typing import Final

from appliance.core.log_events.log_event import NOTHING, REPORT, SEE_SUPPORT, LogEvent

EVENTS: Final[Mapping[str, LogEvent]] = {
    "access-denied": LogEvent(
        "somebody asked for the page or the metrics with a wrong password",
        "if `client` is yours, give it what `stats.auth` says; else narrow `stats.allow`",
    ),
    "api-failed": LogEvent(
        "the cluster's API does not answer `discover` as it should: pools keep the servers they have",
        "`appliance discover` shows what it asks; see the token's rights, the address, and `detail`",
    ),
    "ca-file-kept": LogEvent(
        "a file of authorities cannot be read: checks go on with what was read last",
        "put the file right; it is read again by itself",
    ),
    "check-crashed": LogEvent("a check met a bug; the server keeps its state until the next one", REPORT),
    "check-impossible": LogEvent(
        "this machine cannot make the check, which says nothing of the server: it keeps its state",
        "read `reason`: descriptors, memory, a file that is missing; `appliance check --here`",
    ),
    "discover-failed": LogEvent(
        "`discover` met a bug; it goes on, and pools keep the servers they have", REPORT
    ),
    "doubts-not-heard": LogEvent(
        "workers cannot tell `health` of failed connects: only checks find a server that is down",
        "see that the runtime directory has room and belongs to the appliance's user",
    ),
    "found-not-taken": LogEvent(
        "`reload` did not take the servers that were found: pools keep those they have",
        "read `reason`; `appliance reload --dry-run` says what refuses it",
    ),
    "found-not-written": LogEvent(
        "what was found cannot be kept for the next start",
        "make room in the state directory, or give the appliance's user the right to write there",
    ),
    "history-damaged": LogEvent(
        "the file behind the page's curves was damaged: it was set aside, and they begin anew",
        f"remove the file of `aside`; look at the disk if it comes again; {SEE_SUPPORT}",
    ),
    "look-failed": LogEvent("`stats` met a bug while it gathered figures; the last ones are shown", REPORT),
    "notify-crashed": LogEvent("telling a target of `notify` met a bug; it goes on with the next", REPORT),
    "notify-failed": LogEvent(
        "a target of `notify` was not reached, or its command failed; with `again` it is tried again",
        "read `reason`; see the target's address, its secret files, and whether it listens",
    ),
    "operator-state-kept": LogEvent(
        "a server is in drain or maint because an operator said so before the restart",
        "`appliance ready POOL/SERVER` when it shall serve again",
    ),
    "operator-states-not-kept": LogEvent(
        "what operators say of servers is forgotten with the next restart of `health`",
        "make room in the state directory, or give the appliance's user the right to write there",
    ),
    "operator-states-unreadable": LogEvent(
        "the file of drain and maint was damaged: it was set aside, the last known states hold",
        "compare `appliance status` with what you want; `appliance drain`, `maint` and `ready` say it anew",
    ),
    "operator-weight-kept": LogEvent(
        "a server has another weight than configured because an operator said so before the restart",
        "`appliance weight POOL/SERVER 100%` gives the configured one back",
    ),
    "operator-weights-not-kept": LogEvent(
        "weights that operators gave are forgotten with the next restart of `health`",
        "make room in the state directory, or give the appliance's user the right to write there",
    ),
    "operator-weights-unreadable": LogEvent(
        "the file of weights was damaged: it was set aside, the last known weights hold",
        "compare `appliance status` with what you want; `appliance weight` says it anew",
    ),
    "publishing-crashed": LogEvent("`health` could not publish for a bug, and starts again", REPORT),
    "server-down": LogEvent(
        "checks have failed as often as `fall` says: the server gets no new connections",
        "`appliance why POOL/SERVER` says what the last check saw",
    ),
    "server-unreachable": LogEvent(
        "a server that was down already does not even answer now",
        "`appliance why POOL/SERVER` says what the last check saw; see whether the machine runs",
    ),
    "servers-held": LogEvent(
        "the API shows fewer servers than before, in a way that looks like its own fault: they stay",
        "`appliance discover` says why; it ends by itself, or when the API shows them again",
    ),
    "state-not-kept": LogEvent(
        "a file of the state directory cannot be written: it is lost with the next start",
        "make room there, or give the appliance's user the right to write; `reason` names the file",
    ),
    "stats-socket-failed": LogEvent(
        "nothing listens at `stats.socket`; it is tried again every second",
        "do what `error` asks for; remove what is at `path`, or name another one",
    ),
    "stats-socket-not-accepted": LogEvent(
        "the program `stats` has no descriptors left for a connection: it waits",
        f"close what holds connections to it open; {NOTHING} of the traffic suffers",
    ),
}
