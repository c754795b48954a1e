"""Events of virtual IPs: of `vrrp`, its tracker, `linger`, and leftovers of earlier runs in the kernel."""

from collections.abc import Mapping
from typing import Final

from appliance.core.log_events.log_event import NOTHING, REPORT, SEE_SUPPORT, LogEvent

EVENTS: Final[Mapping[str, LogEvent]] = {
    "address-conflict": LogEvent(
        "another machine answers for a virtual IP, or claims it, without having won the election",
        "find the machine with the MAC address in `detail` (`ip neigh`, the switch), and remove the"
        " address there",
    ),
    "address-foreign": LogEvent(
        "a virtual IP was already on the interface: it is used, and not removed at the end",
        "remove it from the machine's own network configuration",
    ),
    "address-restored": LogEvent(
        "another program removed a virtual IP that is active here; it was added again",
        "find that program, often NetworkManager or systemd-networkd: it must leave the address alone",
    ),
    "announce-crashed": LogEvent("a bug ended `announce`; supervisord starts it again", REPORT),
    "announce-failed": LogEvent(
        "the kernel refuses an address or route of `shared_ips`, for `reason`; it is tried again",
        "start with the capability NET_ADMIN; `ip route show table 198` lists the routes",
    ),
    "bfd-down": LogEvent(
        "a BGP session is up without the BFD that is configured: routers notice a dead node by the hold time",
        "configure BFD at the router, and open UDP port 3784 (4784 with `multihop`)",
    ),
    "bgp-session-down": LogEvent(
        "the BGP session with a neighbour is down, for `reason`: it learns no shared address from this node",
        "compare address, `asn` and `password` with the router's; `appliance bgp status`",
    ),
    "bird-refused": LogEvent(
        "BIRD refused a configuration, or sessions did not come back with it: it runs with the one before",
        "read `reason`, correct `bgp`, and reload",
    ),
    "shared-ip": LogEvent(
        "a shared IP is announced as drained or no more, for `reason`",
        "`appliance bgp status` shows it; it is announced again when its tracks are up",
    ),
    "authority-file": LogEvent(
        "a track's file of CA certificates cannot be read: those that were read last are used",
        "fix the file; it is read again automatically",
    ),
    "capabilities-missing": LogEvent(
        "`vrrp` lacks the capabilities that virtual IPs need: none is held here",
        "start it as root, by its unit, or in a container with NET_ADMIN, NET_RAW and host network",
    ),
    "configuration-differs": LogEvent(
        "another node runs another configuration than this one, for longer than a push takes",
        "`appliance fleet push FILE` brings one file to all nodes",
    ),
    "drop": LogEvent(
        "an advertisement of a peer was invalid, for `reason`: it does not count in the election",
        "compare `id`, `version`, `auth`, addresses with the peer's; `appliance vip status NAME` counts them",
    ),
    "election-unexpected": LogEvent(
        "the election received an event that its table of states does not have", REPORT
    ),
    "interfaces-unread": LogEvent(
        "the kernel does not list the interfaces now; the request is repeated",
        "if it persists: `{supervisorctl} restart vrrp`",
    ),
    "late-wakeup": LogEvent(
        "`vrrp` had to wait for the processor: a long wait causes a failover",
        "give the machine more processors or fewer tasks, or raise `advert`",
    ),
    "leftover-of-another": LogEvent(
        "an address, route or rule of an earlier run belongs to no virtual IP here, and another"
        " `vrrp` runs: it stays",
        "if no appliance holds it, remove it: `ip address del`, `ip route del`, `ip rule del`",
    ),
    "leftover-removed": LogEvent(
        "a leftover of a killed run was removed from the kernel", f"{NOTHING}: this is resolved"
    ),
    "leftover-stays": LogEvent(
        "a leftover of a killed run cannot be removed from the kernel",
        "read `reason`; remove it yourself: `ip address del`, `ip route del`, `ip rule del`, `ip"
        " link del` or `nft delete table`",
    ),
    "leftovers-stay": LogEvent(
        "addresses or routes of a killed run stay on this machine, which does not advertise them",
        "start with the capabilities in `missing`, or remove them: `ip address del`, `ip route del`",
    ),
    "leftovers-unknown": LogEvent(
        "it is unknown whether a killed run left something in the kernel",
        "check yourself: `ip address`, `ip route show table all proto 112`, `ip rule`, `nft list tables`",
    ),
    "last-path": LogEvent(
        "no other node has this shared IP any more, which the nodes `before` had until then",
        "`appliance status` on the other nodes shows why; `appliance leave --if-kept` refuses here meanwhile",
    ),
    "linger-crashed": LogEvent("the program `linger` hit a bug and restarts", REPORT),
    "linger-cut": LogEvent(
        "a virtual IP that had moved away was kept for `linger.longest`: its last connections were closed",
        f"{NOTHING}, or raise `linger.longest`; `connections` is their number",
    ),
    "linger-drop": LogEvent(
        "another node's report of its connections was rejected, the first one for this reason",
        "`digest`: give all nodes one `linger.key`; `version`: one release; a hop limit: one segment",
    ),
    "linger-failed": LogEvent(
        "virtual IPs move without their connections: the kernel or the port refuses",
        "read `reason`; `nft list tables` shows whether nftables works, `ss -ulnp` which program has"
        " the port",
    ),
    "linger-not-cut": LogEvent(
        "connections of a virtual IP that was kept for `linger.longest` could not be closed: the"
        " active node resets them when their clients send data",
        "read `reason`; the kernel needs CONFIG_INET_DIAG_DESTROY",
    ),
    "linger-not-guarded": LogEvent(
        "the kernel cannot protect the rules: another program's `nft flush ruleset` ends connections"
        " of other nodes",
        "read `reason`; Linux 5.12 or newer supports table owners; on older ones, prevent other"
        " programs from flushing our tables",
    ),
    "linger-not-told": LogEvent(
        "this node cannot report its connections to the other nodes",
        "read `reason`; check the interface or the route to `node`",
    ),
    "linger-rules-gone": LogEvent(
        "another program has removed the nftables rules that forward packets to other nodes; they"
        " are written again",
        "find the program that runs `nft flush ruleset` (often a firewall's unit), and exclude our tables",
    ),
    "migrate-crashed": LogEvent("the program `migrate` hit a bug and restarts", REPORT),
    "node-refused": LogEvent(
        "a peer at the port of `linger.sessions` is no node of this pair, or sent what cannot be understood",
        "read `reason`; give all nodes certificates of the same `authorities`, and the same release",
    ),
    "session-ended-on-the-way": LogEvent(
        "a session ended because the program `migrate` died while it read its connections",
        "see why it died: `appliance why migrate`",
    ),
    "session-move-doubtful": LogEvent(
        "the other node did not answer at the end of a batch of sessions: it has them, or they are lost",
        "see why `node` did not answer",
    ),
    "session-move-failed": LogEvent(
        "a part of moving sessions to another node failed",
        "read `reason`; `appliance status` shows whether sessions move",
    ),
    "sessions-cannot-move": LogEvent(
        "no session can move to another node",
        "read `reason`; until then this node must stay until its connections have ended",
    ),
    "sessions-not-back": LogEvent(
        "sessions that the other node did not take ended: no worker of this one took them either",
        "read `reason`; `appliance status` shows whether workers accept",
    ),
    "sessions-stay": LogEvent(
        "sessions of a virtual IP that has moved stay on this node",
        "read `reason`; `appliance leave --wait` waits for their end",
    ),
    "netlink-damaged": LogEvent(
        "the kernel sent messages that cannot be decoded; they were skipped",
        f"`appliance vip status` shows whether virtual IPs are right; {SEE_SUPPORT}",
    ),
    "predecessor-killed": LogEvent(
        "an older `vrrp` did not hand over, and was killed; this one continues in its place",
        f"{NOTHING}, unless a virtual IP moved: `appliance events`",
    ),
    "predecessor-leaves": LogEvent(
        "an older `vrrp` was about to exit: a peer may hold its virtual IPs for a moment",
        f"{NOTHING}; `appliance vip status` shows who holds them",
    ),
    "predecessor-stays": LogEvent(
        "an older `vrrp` of another user still runs: two would hold the same addresses",
        "stop the process `pid` as root, then `{supervisorctl} restart vrrp`",
    ),
    "realtime-given-up": LogEvent(
        "`vrrp` runs without real-time priority: it may lose an election on a busy machine",
        f"it is retried automatically; {SEE_SUPPORT}",
    ),
    "realtime-refused": LogEvent(
        "`vrrp` may not use real-time priority: it may lose an election on a busy machine",
        "give it CAP_SYS_NICE (unit, or --cap-add of the container)",
    ),
    "route-foreign": LogEvent(
        "another program has set a route or rule that a virtual IP needs: that one is used, and stays",
        "remove it from the machine's own network configuration: the appliance adds it within 2s",
    ),
    "route-refused": LogEvent(
        "the kernel rejects a route or rule of a virtual IP; the addresses are served without it",
        "read `reason`: usually the gateway is unreachable, or the interface is down; it is retried every 2s",
    ),
    "route-restored": LogEvent(
        "another program removed routes or rules of this node's addresses; they were added again",
        "find that program, often NetworkManager or systemd-networkd: it must leave them alone",
    ),
    "router-crashed": LogEvent("a sync group hit a bug; the others continue", REPORT),
    "scripts-left": LogEvent(
        "scripts of an earlier tracker were still running, and were killed",
        f"{NOTHING}, unless it recurs: then check that track scripts finish in time",
    ),
    "signal-ignored": LogEvent(
        "`vrrp` received a signal that has no meaning for it", "use `appliance reload`, not signals"
    ),
    "socket-error": LogEvent(
        "the kernel refused to send or receive for this virtual router, for `reason`",
        "check that the interface is up and has an address, and that no firewall drops protocol 112",
    ),
    "split-brain": LogEvent(
        "two nodes are active for one virtual IP: they lose some or all of each other's advertisements",
        "allow protocol 112 to 224.0.0.18 (or the peers) in switch and firewall; `appliance why NAME`",
    ),
    "stop-cut": LogEvent(
        "no peer took over the virtual IPs in time: no node holds them now",
        "`appliance status` on the other node shows why it does not hold them",
    ),
    "strays-limited": LogEvent(
        "more packets of shared addresses belong to no connection of this node than are sent to other nodes:"
        " the others are dropped, and clients send theirs again",
        "often a flood of forged packets: filter it at the routers; after a change of nodes it passes, and"
        " `linger` shows the counters in its status",
    ),
    "track-error": LogEvent("a track hit a bug: its last result stays in effect", REPORT),
    "track-silent": LogEvent(
        "tracks gave no result in time after the start, and count as `counts_as`",
        "check whether what they watch answers: `appliance vip status NAME`",
    ),
    "track-down": LogEvent(
        "a track of a virtual IP fails: the priority falls, or the virtual IP cannot be held",
        "fix the cause in `detail`; `appliance vip status NAME` shows the track and its weight",
    ),
    "tracker-ended": LogEvent(
        "the process that runs the tracks exited; another one starts, and results stay until then",
        f"the log lines before it show why; {SEE_SUPPORT}",
    ),
    "tracker-line": LogEvent(
        "`vrrp` and its tracker did not understand each other",
        "`{supervisorctl} restart vrrp`, if a package was replaced while it ran; else report it",
    ),
    "verdicts-differ": LogEvent(
        "another node finds servers down that are up here, or up that are down here, for longer than both"
        " need to find it out",
        "`appliance why POOL/SERVER` on both nodes: often one of them does not reach the server",
    ),
    "vrrp-state": LogEvent(
        "a virtual IP entered fault (level warning) or another state (info), for `cause`",
        "fix the `reasons`; `appliance why NAME` explains the state",
    ),
}
