"""Finds the virtual routers that are active here and that a new configuration would put into fault."""

from collections.abc import Iterable, Iterator

from appliance.core.vrrp.election import RouterState
from appliance.model.snapshot.virtual_router import TrackKind, VirtualRouter
from appliance.net.netlink.links import Link, Links
from appliance.vrrp.instance.vrrp_instance import VrrpInstance
from appliance.vrrp.sockets import interface_addresses
from appliance.wire.lines.control import AnswerProblem

_FORCE = "to reload anyway: `appliance reload --force`, or the line `reload --force` on a reload socket"


def endangered(
    instances: Iterable[VrrpInstance], routers: Iterable[VirtualRouter], links: Links
) -> Iterator[AnswerProblem]:
    """Yield a problem for each router of `routers` whose fault would take an active address away.

    The router has such an address itself, or shares a sync group with a router that has one: a fault affects
    the whole group.
    """
    wanted = tuple(routers)
    held = [each.router for each in instances if each.election.state is RouterState.ACTIVE]
    addresses = {address for each in held for address in each.addresses}
    concerned = [each for each in wanted if not addresses.isdisjoint(each.addresses)]
    groups = {each.sync_group for each in concerned if each.sync_group is not None}
    for router in wanted:
        if router in held or not (router in concerned or router.sync_group in groups):
            continue
        who = router.name if router in concerned else f"sync group {router.sync_group}"
        for place, why in _faults(router, links):
            yield AnswerProblem(
                message=f"{why}: {who} is active here and would be in fault; {_FORCE}",
                path=f"virtual_ips.{router.name}.{place}",
            )


def _faults(router: VirtualRouter, links: Links) -> Iterator[tuple[str, str]]:
    link = links.state(router.interface)
    if link is None or not link.up:
        yield "interface", _away(router.interface, link)
    elif router.source is not None and not interface_addresses.has(link, router.source):
        yield "source", f"{router.interface} has no address {router.source}"
    elif interface_addresses.source(router, link, kept=None) is None:
        yield "interface", f"{router.interface} has no IPv{router.family} address of its own"
    for name in router.other_interfaces:
        other = links.state(name)
        if name != router.interface and (other is None or not other.up):
            yield "addresses", _away(name, other)
    for track in router.track:
        watched = links.state(track.target) if track.kind is TrackKind.INTERFACE else None
        if track.kind is TrackKind.INTERFACE and track.weight is None and not (watched and watched.up):
            yield f"track.{track.name}.interface", _away(track.target, watched)


def _away(interface: str, link: Link | None) -> str:
    return f"interface {interface} {'does not exist' if link is None else 'is down or has no carrier'}"
