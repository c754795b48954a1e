"""Events of virtual IPs: of the program `vrrp`, its tracker, and what earlier runs left in the kernel."""

from collections.abc import Mapping
from typing import Final

from appliance.core.log_events.log_event import NOTHING, REPORT, SEE_SUPPORT, LogEvent

EVENTS: Final[Mapping[str, LogEvent]] = {
    "address-conflict": LogEvent(
        "another machine answers for a virtual IP, or claims it, though it has not won the election",
        "find who has the MAC address of `detail` (`ip neigh`, the switch), and take the address from it",
    ),
    "address-foreign": LogEvent(
        "a virtual IP was on the interface before us: it is used, and left there at the end",
        "remove it from the machine's own network configuration",
    ),
    "address-restored": LogEvent(
        "somebody has removed a virtual IP that is active here; it was put back",
        "find who did: often NetworkManager or systemd-networkd, that should leave the address alone",
    ),
    "authority-file": LogEvent(
        "a file of authorities of a track cannot be read: what was read last is used",
        "put the file right; what is saved is read by itself",
    ),
    "capabilities-missing": LogEvent(
        "`vrrp` may not do what virtual IPs need: none is held here",
        "start it as root, by its unit, or in a container with NET_ADMIN, NET_RAW and host network",
    ),
    "drop": LogEvent(
        "an advertisement of a peer was invalid, for `reason`: it does not count in the election",
        "compare `id`, `version`, `auth`, addresses with the peer's; `appliance vip status NAME` counts them",
    ),
    "election-unexpected": LogEvent("the election met what its table of states does not have", REPORT),
    "interfaces-unread": LogEvent(
        "the kernel does not tell of interfaces now; it is asked again",
        "if it stays: `{supervisorctl} restart vrrp`",
    ),
    "late-wakeup": LogEvent(
        "the machine let `vrrp` wait for the processor: a long wait is a failover",
        "give the machine more processors or fewer tasks, or `advert` a larger value",
    ),
    "leftover-of-another": LogEvent(
        "an address, route or rule that an earlier run held is not ours now, and another `vrrp` runs here: it"
        " is left alone",
        "`ip address del` (`ip route del`, `ip rule del`) it, if no appliance holds it",
    ),
    "leftover-removed": LogEvent(
        "something that a killed run had left in the kernel was removed", f"{NOTHING}: it is put right"
    ),
    "leftover-stays": LogEvent(
        "something that a killed run had left in the kernel cannot be removed",
        "read `reason`; remove it by hand: `ip address del`, `ip route del`, `ip rule del`, `ip link del` or"
        " `nft delete table`",
    ),
    "leftovers-stay": LogEvent(
        "addresses or routes of a killed run stay on this machine, where nobody advertises them",
        "start with the capabilities of `missing`, or remove them: `ip address del`, `ip route del`",
    ),
    "leftovers-unknown": LogEvent(
        "it cannot be seen whether a killed run has left something in the kernel",
        "look yourself: `ip address`, `ip route show table all proto 112`, `ip rule`, `nft list tables`",
    ),
    "linger-crashed": LogEvent("the program `linger` met a bug and starts again", REPORT),
    "linger-cut": LogEvent(
        "a virtual IP that had moved away was kept for the longest time: its last connections were ended",
        "nothing, or a greater `linger.longest`; `connections` is how many there were",
    ),
    "linger-drop": LogEvent(
        "a report of another node about its connections was not believed, the first one for this reason",
        "`digest`: give all nodes one `linger.key`; `version`: one release; a hop limit: one segment",
    ),
    "linger-failed": LogEvent(
        "virtual IPs move without their connections: the kernel or the port refuses",
        "read `reason`; `nft list tables` shows whether nftables works, `ss -ulnp` who has the port",
    ),
    "linger-not-cut": LogEvent(
        "connections of a virtual IP that was kept for the longest time could not be ended: the active node"
        " resets them when their clients send something",
        "read `reason`; the kernel needs CONFIG_INET_DIAG_DESTROY",
    ),
    "linger-not-guarded": LogEvent(
        "the kernel takes no guard: `nft flush ruleset` of somebody else ends connections of other nodes",
        "read `reason`; Linux 5.12 or newer has owners of tables, else have nobody flush ours",
    ),
    "linger-not-told": LogEvent(
        "the other nodes could not be told which connections are here",
        "read `reason`; look at the interface or the route to `node`",
    ),
    "linger-rules-gone": LogEvent(
        "somebody has removed the rules of nftables that lead packets to other nodes; they are written again",
        "find who runs `nft flush ruleset` (often a firewall's unit), and have it spare our tables",
    ),
    "netlink-damaged": LogEvent(
        "the kernel sent messages that cannot be understood; they were left out",
        f"`appliance vip status` shows whether virtual IPs are right; {SEE_SUPPORT}",
    ),
    "predecessor-killed": LogEvent(
        "an older `vrrp` did not hand over, and was killed; this one goes on in its place",
        f"{NOTHING}, unless a virtual IP moved: `appliance events`",
    ),
    "predecessor-leaves": LogEvent(
        "an older `vrrp` was about to end: its virtual IPs may be with a peer for a moment",
        f"{NOTHING}; `appliance vip status` shows who holds them",
    ),
    "predecessor-stays": LogEvent(
        "an older `vrrp` of another user runs on: two would hold the same addresses",
        "end the process `pid` as root, then `{supervisorctl} restart vrrp`",
    ),
    "realtime-given-up": LogEvent(
        "`vrrp` runs without real-time priority: a busy machine may cost an election",
        f"it is tried again by itself; {SEE_SUPPORT}",
    ),
    "realtime-refused": LogEvent(
        "`vrrp` may not have real-time priority: a busy machine may cost an election",
        "give it CAP_SYS_NICE (unit, or --cap-add of the container)",
    ),
    "route-foreign": LogEvent(
        "somebody else has put a route or rule where one of a virtual IP belongs: theirs is used, and stays",
        "remove it from the machine's own network configuration: ours is there 2s later",
    ),
    "route-refused": LogEvent(
        "the kernel does not take a route or rule of a virtual IP; the addresses are served without it",
        "read `reason`: mostly nobody reaches the gateway, or the interface is down; it is tried each 2s",
    ),
    "route-restored": LogEvent(
        "somebody has removed routes or rules of a virtual IP that is active here; they were put back",
        "find who did: often NetworkManager or systemd-networkd, which should leave foreign ones alone",
    ),
    "router-crashed": LogEvent("a sync group met a bug; the others go on", REPORT),
    "scripts-left": LogEvent(
        "scripts of an earlier tracker still ran, and were killed",
        f"{NOTHING}, unless it comes again: then see that track scripts end in time",
    ),
    "signal-ignored": LogEvent(
        "somebody sent `vrrp` a signal that means nothing to it", "use `appliance reload`, not signals"
    ),
    "socket-error": LogEvent(
        "the kernel refused to send or receive for this virtual router, for `reason`",
        "see whether the interface is up, has an address, and no firewall drops protocol 112",
    ),
    "split-brain": LogEvent(
        "two nodes are active for one virtual IP: they do not hear each other, or not always",
        "let protocol 112 to 224.0.0.18 (or the peers) through switch and firewall; `appliance why NAME`",
    ),
    "stop-cut": LogEvent(
        "no peer took the virtual IPs over in time: they are nowhere now",
        "see why the other node does not hold them: `appliance status` there",
    ),
    "track-error": LogEvent("a track met a bug: it counts as it did before", REPORT),
    "track-silent": LogEvent(
        "tracks gave no result in time after the start, and count as `counts_as` says",
        "see whether what they look at answers: `appliance vip status NAME`",
    ),
    "track-down": LogEvent(
        "something that a virtual IP depends on does not pass: its priority falls, or it cannot be held",
        "put right what `detail` says; `appliance vip status NAME` shows the track and its weight",
    ),
    "tracker-ended": LogEvent(
        "the process that watches tracks ended; another one starts, and results stay until then",
        f"look before it in the log for why; {SEE_SUPPORT}",
    ),
    "tracker-line": LogEvent(
        "`vrrp` and its tracker did not understand each other",
        "`{supervisorctl} restart vrrp`, if a package was replaced while it ran; else report it",
    ),
    "vrrp-state": LogEvent(
        "a virtual IP came into fault (level warning) or another state (info), for `cause`",
        "put `reasons` right; `appliance why NAME` explains the state",
    ),
}
