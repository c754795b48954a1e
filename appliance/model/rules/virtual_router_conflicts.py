"""Rules between virtual IPs of one file: router ids and addresses differ, a sync group has two or more."""

from collections import defaultdict
from collections.abc import Iterator

from appliance.model.config.configuration import Config
from appliance.model.config.virtual_ips import VirtualIpSection
from appliance.model.messages.problems import Finding, Path, dotted
from appliance.model.router_ids import router_id
from appliance.model.rules.findings import error, warning
from appliance.model.snapshot.virtual_routes import VirtualRoute


def findings(config: Config) -> Iterator[Finding]:
    """Yield contradictions between virtual IPs."""
    yield from _same_ids(config)
    yield from _same_addresses(config)
    yield from _same_routes(config)
    yield from _groups_of_one(config)


def _same_ids(config: Config) -> Iterator[Finding]:
    """Yield ids that two entries share if both would receive the same advertisements."""
    taken: dict[tuple[object, ...], list[tuple[str, VirtualIpSection]]] = defaultdict(list)
    for name, given in config.virtual_ips.items():
        number = router_id(given.router_id, name, cluster=config.cluster.name)
        others = taken[given.interface, given.families, number]
        first = next((each for each, other in others if _hear_each_other(given, other)), None)
        if number and first is not None:
            touches: tuple[Path, ...] = (("virtual_ips", first), ("cluster",))
            message = (
                f"{number} is already the id of `{first}` on `{given.interface}`: routers would confuse the "
                "two"
            )
            yield error(("virtual_ips", name, "router_id"), message, *touches)
        others.append((name, given))


def _hear_each_other(one: VirtualIpSection, other: VirtualIpSection) -> bool:
    """Return whether an advertisement may belong to either: not if all unicast peers differ."""
    return not (one.peers and other.peers and set(one.peers).isdisjoint(other.peers))


def _same_addresses(config: Config) -> Iterator[Finding]:
    seen: dict[str, Path] = {}
    for name, given in config.virtual_ips.items():
        places = ("addresses", given.addresses), ("excluded", given.excluded)
        for key, index, each in ((key, *item) for key, found in places for item in enumerate(found)):
            path: Path = ("virtual_ips", name, key, index)
            first = seen.setdefault(each.partition("/")[0], path)
            if first != path:
                yield error(path, f"`{each}` is listed twice, first as {dotted(first)}", first)


def _same_routes(config: Config) -> Iterator[Finding]:
    """Yield routes of two entries if the kernel has room for only one; both may have the same."""
    seen: dict[tuple[str, int, int], tuple[Path, VirtualRoute]] = {}
    for name, given in config.virtual_ips.items():
        path: Path = ("virtual_ips", name, "routes")
        for number, each in enumerate(given.routes, start=1):
            route = each.on(given.interface)
            first, other = seen.setdefault(route.place, (path, route))
            if route != other:
                message = f"route {number}: {route} conflicts with one of {dotted(first)}: {other}"
                yield error(path, message, first)


def _groups_of_one(config: Config) -> Iterator[Finding]:
    groups: dict[str, list[str]] = defaultdict(list)
    for name, given in config.virtual_ips.items():
        if given.sync_group is not None:
            groups[given.sync_group].append(name)
    for group, names in groups.items():
        if len(names) == 1:
            message = f"no other virtual IP is in the group `{group}`: it has no effect"
            yield warning(("virtual_ips", names[0], "sync_group"), message, ("virtual_ips",))
