"""Events of proxies, their workers, and rules that redirect connections: `proxy-*`, `forward`, `redirect`."""

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
        "the appliance listens on the address, but not as configured",
        "read `reason`; fix the bind or the machine, then `appliance reload`",
    ),
    "connections-not-ended": LogEvent(
        "the kernel keeps connections to a server that is down",
        f"they end by the clients' own timeouts; {SEE_SUPPORT}",
    ),
    "conntrack-fills": LogEvent(
        "the kernel's table of connections is nearly full: it will drop new ones, checks among them",
        connection_room.ADVICE,
    ),
    "drain-cut": LogEvent(
        "sessions of an old generation were still open at the end of its drain time, and were cut",
        "raise `drain`, the time that sessions have after a reload, if clients were affected",
    ),
    "forward-crashed": LogEvent("the program `forward` hit a bug and restarts; its rules stay", REPORT),
    "flowtable-failed": LogEvent(
        "the kernel or an interface has no flowtables: the rules forward every packet, as without the key",
        "read `reason`; `appliance check --here` shows what the machine lacks, or remove `flowtable`",
    ),
    "forward-failed": LogEvent(
        "the kernel rejects the rules: the last good ones serve frontends with `forward: kernel`",
        "read `reason`; `appliance check --here` shows what the machine lacks",
    ),
    "forward-not-guarded": LogEvent(
        "the kernel cannot protect the rules: another program's `nft flush ruleset` ends forwarded"
        " connections",
        "read `reason`; Linux 5.12 or newer supports table owners; on older ones, prevent other"
        " programs from flushing our tables",
    ),
    "forward-rules-gone": LogEvent(
        "another program has changed or removed the nftables rules; they are written again",
        "find the program that runs `nft flush ruleset` (often a firewall's unit), and exclude our tables",
    ),
    "frontend-full": LogEvent(
        "a worker has as many connections as the frontend allows: further clients wait",
        "`appliance sessions --frontend NAME` shows the clients; else raise its `max_connections`",
    ),
    "generation-adopted": LogEvent(
        "the master was restarted and took over workers that still served: no connection was lost",
        f"the log lines before it show why the master exited; {SEE_SUPPORT}",
    ),
    "generation-cut": LogEvent(
        "more generations were draining than `max_draining`: the sessions of the oldest were cut",
        "reload less often, or raise `max_draining` (each generation costs memory)",
    ),
    "generation-failed": LogEvent(
        "new workers did not become ready: the reload was refused, the old ones continue to serve",
        "read `reason` and the workers' lines before it; then `appliance reload`",
    ),
    "internal-error": LogEvent("a worker or a master hit a bug; it continues or is replaced", REPORT),
    "listeners-not-received": LogEvent(
        "a worker that was taken over did not pass on its listening sockets; they are bound again",
        f"{NOTHING}, unless `appliance status` shows a problem with a bind",
    ),
    "look-impossible": LogEvent(
        "`redirect` cannot check its conditions, and keeps the rules as they are",
        "read `reason`; `appliance check --here` shows what the machine lacks",
    ),
    "master-gone": LogEvent(
        "a new worker found its master gone, and exits",
        f"{NOTHING}: the next master starts its own workers; see why the first one exited",
    ),
    "open-files-low": LogEvent(
        "the limit of open files allows fewer sessions than the configuration",
        "raise LimitNOFILE= of the unit (or --ulimit nofile of the container) and start again",
    ),
    "option-refused": LogEvent(
        "the kernel refused a socket option; connections work without it",
        "remove the key in `option`, or run a kernel that supports it",
    ),
    "redirect-crashed": LogEvent("the program `redirect` hit a bug and restarts", REPORT),
    "redirect-failed": LogEvent(
        "the nftables rules cannot be written: connections go to the other program",
        "read `reason`; `appliance check --here` shows what the machine lacks",
    ),
    "redirect-not-guarded": LogEvent(
        "this kernel cannot block direct connections to redirected ports",
        "use a kernel with nft_fib, or close those ports in the machine's firewall",
    ),
    "redirect-not-owned": LogEvent(
        "this kernel cannot remove our tables by itself if the program is killed",
        f"{NOTHING} while it runs; Linux 5.12 or newer supports table owners",
    ),
    "redirect-not-withdrawn": LogEvent(
        "a proxy exits, and the rules that redirect to it may remain for a moment",
        "`appliance status` shows the redirect; `{supervisorctl} restart redirect`",
    ),
    "rollout-event-unexpected": LogEvent(
        "a generation received an event that its table of states does not have", REPORT
    ),
    "sessions-lost": LogEvent(
        "a new worker, another node or `migrate` had sessions and then failed: their connections were cut",
        f"clients reconnect; {SEE_SUPPORT}",
    ),
    "sessions-not-moved": LogEvent(
        "a new worker could not take sessions now: they stay in the old one, and it is retried",
        f"{NOTHING}; `appliance status` shows what drains",
    ),
    "source-unavailable": LogEvent(
        "servers were connected from the node, not from the virtual IP as `source: virtual-ip` says:"
        " it has just moved, or no port of `source_ports` is free",
        "without free ports: more `source_ports`, or more servers; those connections stay when it moves",
    ),
    "sync": LogEvent(
        "this node receives nothing of another node: forwarded connections of `sync` would end with it",
        "`appliance status` on the other nodes; they need the same virtual IPs, and UDP port 3780 open",
    ),
    "sync-failed": LogEvent(
        "conntrackd does not run or does not answer: forwarded connections would end with this node",
        "read `reason`; conntrackd.log in the runtime directory has its words; it is started again",
    ),
    "sync-strict": LogEvent(
        "the kernel resets connections of `sync` that come back to this node after it was cut off",
        "set `net.netfilter.nf_conntrack_tcp_be_liberal = 1` on the host (sysctl.d)",
    ),
    "worker-died": LogEvent(
        "a worker process exited: its sessions are lost, another one starts after `again_in` seconds",
        "read `reason`: signal 9 often means memory (`journalctl -k`); else report it with"
        " `appliance support`",
    ),
    "worker-refused": LogEvent(
        "a worker refused a command of its master, which repeats it or replaces the worker",
        f"read `reason`; {SEE_SUPPORT}",
    ),
    "worker-silent": LogEvent(
        "a worker that was taken over does not answer: it keeps its sessions, and gets no commands",
        f"{NOTHING} while it drains; `appliance status` shows it; {SEE_SUPPORT}",
    ),
    "worker-stuck": LogEvent(
        "a worker did not complete a command in time, and is killed",
        f"check whether the machine has processor time left; {SEE_SUPPORT}",
    ),
    "worker-unreachable": LogEvent(
        "a worker stopped answering its master and is killed; another one starts",
        f"check whether the machine has processor time left; {SEE_SUPPORT}",
    ),
}
