"""Requirements of `shared_ips` and `bgp` that this machine lacks: BIRD and its port, ways to neighbours."""

from collections.abc import Iterator
from ipaddress import ip_interface
from socket import AF_INET, AF_INET6
from typing import Final

from appliance.announce.bird import MISSING, executable
from appliance.announce.bird_control import process
from appliance.model.messages.problems import Finding, Path
from appliance.model.paths import Paths
from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.shared_ip import Bgp, Engine
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.listening.bind_refusals import may_be_given
from appliance.net.listening.listeners import Listeners, ReservedBinds
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.networks import networks
from appliance.net.netlink.route_lookup import way
from appliance.net.netlink.route_messages import all_routes, decode_place
from appliance.net.netlink.rtnetlink import readable
from appliance.wire.bird.bird_config import PROTOCOL

_PORT: Final = 179
_ENGINE: Final = ("bgp", "engine")


def announce_lacks(snapshot: Snapshot, paths: Paths) -> Iterator[Finding]:
    """Yield each; nothing if there are no shared addresses."""
    yield from _local(snapshot)
    if snapshot.bgp is None:
        return
    if snapshot.bgp.engine is Engine.BIRD:
        if executable() is None:
            yield Finding(path=_ENGINE, message=MISSING)
        elif not process(paths.bird_control):
            yield from _port()
    yield from _ways(snapshot.bgp)
    yield from _tables(snapshot.bgp)


def _local(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the addresses that clients of this segment would ask for with ARP: no node answers."""
    found = (ip_interface(each).network for each in networks())
    here = [each for each in found if each.num_addresses > 1]
    for shared in snapshot.shared_ips:
        for at, each in enumerate(shared.addresses):
            wanted = ip_interface(each).ip
            inside = next((own for own in here if wanted in own), None)
            if inside is not None:
                path: Path = ("shared_ips", shared.name, "addresses", at)
                message = (
                    f"is in the network {inside} of this machine, whose hosts resolve it directly,"
                    " and no node would answer: use `virtual_ips` for them, and another address here"
                )
                yield Finding(path=path, message=message)


def _port() -> Iterator[Finding]:
    """Yield a finding if another program has BGP's port, such as the machine's own FRR or BIRD."""
    probe = Listeners()
    reserved = probe.reserve([Bind(host="::", port=_PORT)], virtual=())
    if not isinstance(reserved, ReservedBinds):
        taken = [each for each in reserved if not may_be_given(each.reason)]
        for each in taken:
            yield Finding(path=_ENGINE, message=f"{each}: with `engine: table` that daemon announces")
    probe.keep_only(())


def _tables(bgp: Bgp) -> Iterator[Finding]:
    """Yield the tables that another program routes by: kube-vip's routes are marked as ours are."""
    with Requests() as requests:
        places = {
            place
            for family in (AF_INET, AF_INET6)
            for place in readable(decode_place, requests.dump(all_routes(family, protocol=0)))
        }
    others = {table for table, protocol in places if protocol != PROTOCOL}
    for key, table in (("serve", bgp.serve), ("drain", bgp.drain)):
        if table in others:
            message = f"table {table} has routes of another program: choose one that is not used"
            yield Finding(path=("bgp", "tables", key), message=message)


def _ways(bgp: Bgp) -> Iterator[Finding]:
    """Yield the neighbours to which a session would not be made."""
    with Requests() as requests:
        for each in bgp.neighbors:
            path: Path = ("bgp", "neighbors", each.name)
            found = None if "%" in each.address else way(requests, each.address)
            if found is None:
                if "%" not in each.address:
                    yield Finding(path=(*path, "address"), message=f"there is no route to {each.address}")
            elif found.routed and each.multihop is None and each.asn != bgp.asn:
                message = f"{each.address} is behind a router: set `multihop`"
                yield Finding(path=(*path, "address"), message=message)
