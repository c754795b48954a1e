"""Requirements of `linger` that this machine lacks: parts of the kernel, a segment that all nodes share."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from appliance.core.linger import ruleset
from appliance.core.linger.segment import objection, off_segment, unreachable
from appliance.model.capability import Capability
from appliance.model.messages.problems import Finding
from appliance.model.snapshot.linger import LEAST_MTU, Vxlan
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.netlink import vxlan
from appliance.net.netlink.links import Links
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.route_lookup import way
from appliance.net.nftables.nftables import Nftables, NftablesError, unusable
from appliance.net.packets.interface_mtu import mtus
from appliance.net.privileges import process_capabilities
from appliance.wire.nftables.nftables_commands import Family

_LOOSE: Final = Path("/proc/sys/net/netfilter/nf_conntrack_tcp_loose")
_FAMILIES: Final = {4: Family.IPV4, 6: Family.IPV6}


def linger_lacks(snapshot: Snapshot, *, connect: Callable[[], Nftables] = Nftables) -> Iterator[Finding]:
    """Yield each; nothing if `linger` is not configured. `connect` opens nftables."""
    if snapshot.linger is None:
        return
    yield from _conntrack()
    yield from _rules(snapshot, connect)
    yield from _segment(snapshot)


def _conntrack() -> Iterator[Finding]:
    """Yield a finding if the kernel rejects connections whose start it has not seen (nf_conntrack-sysctl)."""
    if _LOOSE.exists() and _LOOSE.read_text().strip() == "0":
        message = (
            "connections of another node cannot be distinguished from damaged packets here:"
            " set `net.netfilter.nf_conntrack_tcp_loose = 1` (sysctl.d)"
        )
        yield Finding(path=("linger",), message=message)


def _rules(snapshot: Snapshot, connect: Callable[[], Nftables]) -> Iterator[Finding]:
    """Yield a finding if the kernel rejects the rules in a trial; other checks report missing nftables."""
    if unusable() or not process_capabilities.has(Capability.CAP_NET_ADMIN):
        return
    shared = {6 if ":" in each else 4 for each in snapshot.shared_addresses}
    for version in sorted(shared.union(each.family for each in snapshot.virtual_routers)):
        try:
            with closing(connect()) as nftables:
                nftables.try_script(ruleset.trial(_FAMILIES[version], shared=version in shared))
        except NftablesError as error:
            message = (
                f"the kernel does not forward IPv{version} packets to other nodes: {error}: is its module"
                f" nft_dup_ipv{version} there (CONFIG_NFT_DUP_IPV{version}), and conntrack (nft_ct)?"
            )
            yield Finding(path=("linger",), message=message)


def _segment(snapshot: Snapshot) -> Iterator[Finding]:
    with Links() as links:
        known = {each.interface: links.state(each.interface) for each in snapshot.virtual_routers}
    own = {name: link.own if link else () for name, link in known.items()}
    for router, peer in off_segment(snapshot.virtual_routers, own.__getitem__):
        yield Finding(path=("virtual_ips", router.name, "peers"), message=objection(router, peer))
    if snapshot.linger is None or not snapshot.shared_ips:
        return
    with Requests() as requests:
        for at, peer in enumerate(snapshot.linger.peers):
            found = way(requests, peer)
            if found is None or (found.routed and not snapshot.linger.vxlan):
                message = unreachable(peer, routed=found is not None)
                yield Finding(path=("linger", "peers", at), message=message)
        if snapshot.linger.vxlan:
            yield from _vxlan(requests, snapshot.linger.vxlan, snapshot.linger.peers)


def _vxlan(requests: Requests, given: Vxlan, peers: Iterable[str]) -> Iterator[Finding]:
    path = "linger", "vxlan"
    if vxlan.is_missing(requests):
        message = "this kernel has no VXLAN: is its module vxlan there (CONFIG_VXLAN)?"
        yield Finding(path=path, message=message)
    if taken := vxlan.foreign(requests, given.port):
        message = f"UDP port {given.port} is that of the VXLAN {taken} of another program: choose another one"
        yield Finding(path=(*path, "port"), message=message)
    with suppress(OSError):  # the interface is gone
        for name, mtu in mtus(requests, peers).items():
            if mtu < LEAST_MTU:
                yield Finding(path=path, message=f"the MTU of {name} is {mtu}, and {LEAST_MTU} is the least")
            elif given.mtu is not None and mtu < given.mtu:
                message = f"the MTU of {name} is only {mtu}: larger packets would be fragmented"
                yield Finding(path=(*path, "mtu"), message=message)
