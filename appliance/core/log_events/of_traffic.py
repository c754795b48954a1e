"""Events of proxies, their workers, and of rules that lead connections: `proxy-*`, `forward`, `redirect`."""

from collections.abc import Mapping
from typing import Final

from appliance.core.log_events.log_event import NOTHING, REPORT, SEE_SUPPORT, LogEvent
from appliance.core.status import connection_room

EVENTS: Final[Mapping[str, LogEvent]] = {
    "accept-paused": LogEvent(
        "the worker has no descriptors left, or the machine no memory: clients wait until sessions end",
        "raise LimitNOFILE= of the unit or lower `max_connections`; `appliance check --here` compares them",
    ),
    "bind-degraded": LogEvent(
        "the address is listened on, but not in the way that was asked for",
        "read `reason`; put the bind or the machine right, then `appliance reload`",
    ),
    "connections-not-ended": LogEvent(
        "the kernel goes on with connections to a server that is down",
        f"clients end them by their own time limits; {SEE_SUPPORT}",
    ),
    "conntrack-fills": LogEvent(
        "the kernel's table of connections is nearly full: it will drop new ones, checks among them",
        connection_room.ADVICE,
    ),
    "drain-cut": LogEvent(
        "sessions of an old generation were still open when its time was over, and were cut",
        "raise `drain`, the time that sessions are given after a reload, if clients suffered",
    ),
    "forward-crashed": LogEvent("the program `forward` met a bug and starts again; its rules stay", REPORT),
    "flowtable-failed": LogEvent(
        "the kernel or an interface has no flowtables: the rules forward every packet, as without the key",
        "read `reason`; `appliance check --here` says what the machine lacks, or leave `flowtable` out",
    ),
    "forward-failed": LogEvent(
        "the kernel does not take the rules: `forward: kernel` frontends are led by the last good ones",
        "read `reason`; `appliance check --here` says what the machine lacks",
    ),
    "forward-not-guarded": LogEvent(
        "the kernel takes no guard: `nft flush ruleset` of somebody else ends forwarded connections",
        "read `reason`; Linux 5.12 or newer has owners of tables, else have nobody flush ours",
    ),
    "forward-rules-gone": LogEvent(
        "somebody has changed or removed the rules of nftables; they are written again",
        "find who runs `nft flush ruleset` (often a firewall's unit), and have it spare our tables",
    ),
    "frontend-full": LogEvent(
        "a worker has as many connections as the frontend may: the next clients wait",
        "`appliance sessions --frontend NAME` shows whose they are; else raise its `max_connections`",
    ),
    "generation-adopted": LogEvent(
        "the master was started anew and took over workers that still served: no connection was lost",
        f"look before it in the log for why the master ended; {SEE_SUPPORT}",
    ),
    "generation-cut": LogEvent(
        "more generations drained than `max_draining`: the sessions of the oldest were cut",
        "reload less often, or raise `max_draining` (each costs memory)",
    ),
    "generation-failed": LogEvent(
        "new workers did not become ready: the reload was refused, the old ones serve on",
        "read `reason` and the workers' lines before it; then `appliance reload`",
    ),
    "internal-error": LogEvent("a worker or a master met a bug; it goes on or is replaced", REPORT),
    "listeners-not-received": LogEvent(
        "a worker that was taken over did not hand its listening sockets; they are bound anew",
        f"{NOTHING}, unless `appliance status` shows a bind as a problem",
    ),
    "look-impossible": LogEvent(
        "`redirect` cannot see what it decides by, and keeps the rules as they are",
        "read `reason`; `appliance check --here` says what the machine lacks",
    ),
    "master-gone": LogEvent(
        "a new worker found no master any more and ends",
        f"{NOTHING}: the next master starts its own; look for why the first one ended",
    ),
    "open-files-low": LogEvent(
        "the limit of open files allows fewer sessions than the configuration",
        "raise LimitNOFILE= of the unit (or --ulimit nofile of the container) and start again",
    ),
    "option-refused": LogEvent(
        "the kernel refused an option of the connections; they work without it",
        "remove the key that `option` names, or run a kernel that has it",
    ),
    "redirect-crashed": LogEvent("the program `redirect` met a bug and starts again", REPORT),
    "redirect-failed": LogEvent(
        "the rules of nftables cannot be written: connections go to the other program",
        "read `reason`; `appliance check --here` says what the machine lacks",
    ),
    "redirect-not-guarded": LogEvent(
        "this kernel cannot keep redirected ports from being reached directly",
        "use a kernel with nft_fib, or close those ports by the machine's firewall",
    ),
    "redirect-not-owned": LogEvent(
        "this kernel cannot remove our tables by itself if the program is killed",
        f"{NOTHING} while it runs; a kernel of 5.12 or newer has table owners",
    ),
    "redirect-not-withdrawn": LogEvent(
        "a proxy ends, and the rules that lead to it may still stand for a moment",
        "`appliance status` shows the redirect; `{supervisorctl} restart redirect`",
    ),
    "rollout-event-unexpected": LogEvent("a generation met what its table of states does not have", REPORT),
    "sessions-lost": LogEvent(
        "a new worker took sessions and then failed: these clients were cut",
        f"clients connect again; {SEE_SUPPORT}",
    ),
    "sessions-not-moved": LogEvent(
        "a new worker could not take sessions now: they go on in the old one, and it is tried again",
        f"{NOTHING}; `appliance status` shows what drains",
    ),
    "worker-died": LogEvent(
        "a worker process ended: its sessions are lost, another one starts after `again_in` seconds",
        "read `reason`: signal 9 is often memory (`journalctl -k`); else report what `appliance support` has",
    ),
    "worker-refused": LogEvent(
        "a worker refused an order of its master, which gives it again or replaces the worker",
        f"read `reason`; {SEE_SUPPORT}",
    ),
    "worker-silent": LogEvent(
        "a worker that was taken over does not answer: it keeps its sessions, and gets no orders",
        f"{NOTHING} while it drains; `appliance status` shows it; {SEE_SUPPORT}",
    ),
    "worker-stuck": LogEvent(
        "a worker did not do in time what it was told to, and is killed",
        f"look whether the machine has processor time left; {SEE_SUPPORT}",
    ),
    "worker-unreachable": LogEvent(
        "a worker stopped answering its master and is killed; another one starts",
        f"look whether the machine has processor time left; {SEE_SUPPORT}",
    ),
}
