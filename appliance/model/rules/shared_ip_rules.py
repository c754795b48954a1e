"""Rules for `shared_ips` and `bgp`: what routers would not learn, or what would end connections."""

from collections.abc import Iterator
from typing import Final

from appliance.model.config.bgp import BgpSection, NeighborSection
from appliance.model.config.configuration import Config, SharedIpSection
from appliance.model.messages.problems import Finding, Path, dotted, nearest
from appliance.model.program_names import ANNOUNCE
from appliance.model.rules.findings import error, key_error, warning
from appliance.model.rules.track_rules import one_track
from appliance.model.snapshot.shared_ip import Engine, session_families

MOST_ADDRESSES: Final = 256
"""Most addresses of all shared IPs: as many as BIRD's filters and the rules of `linger` list easily."""


def findings(config: Config) -> Iterator[Finding]:
    """Yield the contradictions."""
    for name, given in config.shared_ips.items():
        yield from _shared_ip(("shared_ips", name), given, config)
    yield from _same_addresses(config)
    if config.bgp is not None:
        yield from _bgp(config.bgp, config)
    if not config.shared_ips:
        return
    if config.bgp is None:
        yield from _without_bgp(config)
    if config.linger is None:
        message = "without `linger`, each change of the nodes that serve ends connections of all"
        yield warning(("shared_ips",), message, ("linger",))
    elif not config.linger.peers:
        message = (
            "`linger` has no peers: name the other nodes there or in `nodes`, or connections end at changes"
        )
        yield warning(("shared_ips",), message, ("linger",), ("nodes",))


def _without_bgp(config: Config) -> Iterator[Finding]:
    """Yield that no router finds the addresses: without BGP it has a static route to virtual IPs."""
    if not config.virtual_ips:
        message = (
            "no router learns these addresses: add the section `bgp`, "
            "or `virtual_ips` that a static route of the router leads to"
        )
        yield error(("shared_ips",), message, ("bgp",), ("virtual_ips",))
        return
    tracks = (each for given in config.virtual_ips.values() for each in given.track.values())
    if not any(each.program == ANNOUNCE for each in tracks):
        message = (
            "without `bgp`, routers find these addresses by virtual IPs only, "
            "and none follows them: add a track `program: announce` to those"
        )
        yield warning(("shared_ips",), message, ("bgp",), ("virtual_ips",))


def references(config: Config) -> Iterator[Finding]:
    """Yield the names that are no neighbours of any node; `config` is that of all nodes."""
    known = config.bgp.neighbors if config.bgp else {}
    for name, given in config.shared_ips.items():
        for at, each in enumerate(given.neighbors):
            if config.bgp is not None and each not in known:
                meant = nearest(each, known)
                hint = (
                    f"did you mean `{meant}`?" if meant else f"known are {', '.join(known) or 'none at all'}"
                )
                yield error(("shared_ips", name, "neighbors", at), f"no neighbour of `bgp`: {hint}", ("bgp",))


def _shared_ip(path: Path, given: SharedIpSection, config: Config) -> Iterator[Finding]:
    for name, track in given.track.items():
        at: Path = (*path, "track", name)
        yield from one_track(at, track, config)
        if track.program == ANNOUNCE:
            yield error((*at, "program"), "follows this track: name a proxy")
        if track.weight is not None:
            yield key_error((*at, "weight"), "has no effect on shared addresses, which have no priority")
        if track.interface is not None:
            message = "is not tracked here: a router withdraws the routes of a link that is down by itself"
            yield key_error((*at, "interface"), message)


def _same_addresses(config: Config) -> Iterator[Finding]:
    seen: dict[str, Path] = {
        each.partition("/")[0]: ("virtual_ips", name, key)
        for name, given in config.virtual_ips.items()
        for key, found in (("addresses", given.addresses), ("excluded", given.excluded))
        for each in found
    }
    for name, given in config.shared_ips.items():
        for at, each in enumerate(given.addresses):
            path: Path = ("shared_ips", name, "addresses", at)
            first = seen.setdefault(each.partition("/")[0], path)
            if first != path:
                yield error(path, f"`{each}` is listed twice, first as {dotted(first)}", first)
    count = sum(len(each.addresses) for each in config.shared_ips.values())
    if count > MOST_ADDRESSES:
        yield error(("shared_ips",), f"{count} addresses: {MOST_ADDRESSES} are supported")


def _bgp(given: BgpSection, config: Config) -> Iterator[Finding]:
    if not config.shared_ips:
        yield warning(("bgp",), "does nothing: there are no `shared_ips`")
    if given.tables.serve == given.tables.drain:
        message = f"{given.tables.drain} is the table of `serve`, too"
        yield error(("bgp", "tables", "drain"), message, ("bgp", "tables", "serve"))
    if given.engine is Engine.BIRD and not given.neighbors:
        message = "BIRD has no neighbour at this node: name one in `neighbors`, or use `engine: table`"
        yield error(("bgp",), message, ("bgp", "neighbors"), ("bgp", "engine"))
    if given.engine is Engine.BIRD and given.neighbors:
        yield from _unannounced(given, config)
    shared = {each.partition("/")[0] for one in config.shared_ips.values() for each in one.addresses}
    seen: dict[str, str] = {}
    for name, each in given.neighbors.items():
        yield from _neighbor(("bgp", "neighbors", name), each, given, shared)
        first = seen.setdefault(each.address, name)
        if first != name:
            path: Path = ("bgp", "neighbors", name, "address")
            yield error(path, f"is that of `{first}`, too", ("bgp", "neighbors", first))


def _unannounced(given: BgpSection, config: Config) -> Iterator[Finding]:
    """Yield addresses of a family that no neighbour learns, as its next hop would be of the other one."""
    for name, shared in config.shared_ips.items():
        mine = [
            each for key, each in given.neighbors.items() if not shared.neighbors or key in shared.neighbors
        ]
        carried = {family for each in mine for family in session_families(each.address)}
        for at, each in enumerate(shared.addresses):
            family = 6 if ":" in each else 4
            if mine and family not in carried:
                message = f"no neighbour learns it: name one with an IPv{family} or link-local address"
                yield error(("shared_ips", name, "addresses", at), message, ("bgp", "neighbors"))


def _neighbor(path: Path, given: NeighborSection, bgp: BgpSection, shared: set[str]) -> Iterator[Finding]:
    host = given.address.partition("%")[0]
    if host in shared:
        yield error(
            (*path, "address"), "is a shared address of this appliance, not a router", ("shared_ips",)
        )
    if given.multihop is not None and "%" in given.address:
        message = "has no effect on a link-local address, which is on the same segment"
        yield key_error((*path, "multihop"), message, (*path, "address"))
    if given.multihop is not None and given.asn == bgp.asn:
        message = "has no effect on an internal session, which may cross routers"
        yield warning((*path, "multihop"), message, (*path, "asn"))
    if given.bfd is not None:
        detection = given.bfd.interval * given.bfd.multiplier
        if detection >= given.hold:
            message = (
                "detects a dead neighbour no sooner than the hold time: use shorter ones, or leave it out"
            )
            yield warning((*path, "bfd"), message, (*path, "hold"))
        elif 0 < bgp.graceful_restart <= detection:
            message = "a BIRD that was killed is back only when this has noticed: after `graceful_restart`"
            yield warning((*path, "bfd"), message, ("bgp", "graceful_restart"))
