"""Rules for `linger` and `sync`: which virtual IPs can move with their connections."""

from collections import Counter
from collections.abc import Collection, Iterator
from ipaddress import ip_address
from typing import Final

from appliance.model.config.configuration import Config
from appliance.model.config.frontends import FrontendSection
from appliance.model.config.linger import VxlanSection
from appliance.model.config.values.vrrp import DEVICE
from appliance.model.config.virtual_ips import VirtualIpSection
from appliance.model.messages.problems import Finding, Path
from appliance.model.rules.findings import error, warning
from appliance.model.rules.references import frontends
from appliance.model.snapshot.frontends import Forward
from appliance.model.snapshot.linger import inside
from appliance.model.snapshot.pools import SourceAddress
from appliance.model.snapshot.sync import covers


def sync_findings(config: Config) -> Iterator[Finding]:
    """Yield what `sync` cannot do: its frontends need `forward: kernel` and a virtual IP."""
    for path, frontend in frontends(config):
        if frontend.sync:
            yield from _frontend((*path, "sync"), frontend, config)


def _frontend(path: Path, frontend: FrontendSection, config: Config) -> Iterator[Finding]:
    forward = (*path[:-1], "forward")
    if frontend.forward is not Forward.KERNEL:
        message = (
            "needs `forward: kernel`: a proxy's connections end with its node, as their bytes are in its"
            " memory"
        )
        yield error(path, message, forward)
        return
    found = {name: each for name, each in config.virtual_ips.items() if _lead_to(frontend, each)}
    for name, each in found.items():
        if len(each.peers) > 1:
            message = (
                f"conntrackd sends to one peer, or by multicast, and `{name}` has {len(each.peers)} peers:"
                " leave `peers` out, or name one"
            )
            yield error(path, message, ("virtual_ips", name, "peers"))
    if not found:
        message = "needs a virtual IP: no address of `virtual_ips` leads to this frontend, so none moves"
        yield error(path, message, (*path[:-1], "bind"))


def _lead_to(frontend: FrontendSection, given: VirtualIpSection) -> bool:
    literal = (each.partition(DEVICE)[0].partition("/")[0] for each in (*given.addresses, *given.excluded))
    return any(covers(bind.host, each) for each in literal for bind in frontend.bind)


MOST: Final = {4: 64, 6: 40}
"""Addresses of one family, shared ones or on one interface, in one report (wire.linger_report)."""

MOST_PEERS: Final = 15
"""Nodes that a report can answer (wire.linger_report.MOST_ANSWERED)."""


def findings(config: Config) -> Iterator[Finding]:
    """Yield what `linger` cannot do."""
    if config.linger is None:
        return
    if not config.virtual_ips and not config.shared_ips:
        yield warning(("linger",), "does nothing: there are no `virtual_ips`")
    if config.linger.sessions and all(each.source is SourceAddress.NODE for each in config.pools.values()):
        message = "does nothing: no pool has `source: virtual-ip`"
        yield warning(("linger", "sessions"), message)
    yield from _elsewhere(config)
    counts: Counter[tuple[str, int]] = Counter()
    for each in config.virtual_ips.values():
        for family in each.families:
            held = len(each.addresses) + len(each.excluded) - len(each.elsewhere)
            counts[each.interface, family] += held
    yield from _shared(config, config.linger.peers)
    if config.linger.vxlan is not None:
        yield from _vxlan(config, config.linger.vxlan, config.linger.peers)
    for (interface, version), count in counts.items():
        if count > MOST[version]:
            yield error(
                ("linger",),
                f"supports {MOST[version]} IPv{version} addresses on {interface}, not {count}",
            )


def _elsewhere(config: Config) -> Iterator[Finding]:
    """Yield the addresses whose packets no node forwards."""
    for name, each in config.virtual_ips.items():
        for address, interface in each.elsewhere:
            if interface != each.interface:
                message = (
                    f"connections of {address}, on `{interface}`, end when it moves: no node forwards their "
                    "packets there"
                )
                yield warning(("virtual_ips", name, "addresses"), message, ("linger",))
            else:
                message = (
                    f"connections of {address} end when it moves: only those of IPv{each.families[0]} are "
                    "forwarded here; make it a separate entry, with the same `sync_group`"
                )
                yield warning(("virtual_ips", name, "excluded"), message, ("linger",))


def _shared(config: Config, peers: Collection[str]) -> Iterator[Finding]:
    shared = [each for one in config.shared_ips.values() for each in one.addresses]
    for version, most in MOST.items():
        count = sum((":" in each) == (version == 6) for each in shared)
        if count > most:
            yield error(("linger",), f"supports {most} shared IPv{version} addresses, not {count}")
        count = sum((":" in each) == (version == 6) for each in peers)
        if shared and count > MOST_PEERS:
            message = f"{MOST_PEERS} other nodes are supported, not {count} by IPv{version}"
            yield error(("linger", "peers"), message)


def _vxlan(config: Config, given: VxlanSection, peers: Collection[str]) -> Iterator[Finding]:
    if not config.shared_ips:
        yield warning(("linger", "vxlan"), "does nothing: there are no `shared_ips`")
    if config.linger is not None and given.port == config.linger.port:
        yield error(("linger", "vxlan", "port"), "is that of the reports, too", ("linger", "port"))
    seen: dict[str, str] = {}
    for at, peer in enumerate(peers):
        first = seen.setdefault(inside(peer), peer)
        if ip_address(peer).is_link_local:
            message = f"{peer} is an address of one segment: a VXLAN needs one that routers know"
            yield error(("linger", "peers", at), message, ("linger", "vxlan"))
        elif first != peer:
            message = f"{peer} and {first} have the same address in the VXLAN: they differ in four bits only"
            yield error(("linger", "peers", at), message, ("linger", "vxlan"))
