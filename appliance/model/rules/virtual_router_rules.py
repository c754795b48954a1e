"""Rules for one virtual IP: its version of VRRP, families, router id, peers, priority and times.

An error is a setting that two routers could not agree on, or that could not work; a warning is probably not
intended.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from appliance.model.config.configuration import Config
from appliance.model.config.virtual_ips import AuthSection, VirtualIpSection
from appliance.model.messages.problems import Finding, Path, dotted
from appliance.model.router_ids import router_id
from appliance.model.rules.findings import error, key_error, warning
from appliance.model.rules.track_rules import track_findings
from appliance.model.snapshot.virtual_router import OWNER_PRIORITY, AntiReplay, VirtualRoute

PASSWORD_SIZE: Final = 8
"""Bytes of a password that an advertisement has room for (RFC 2338 section 5.3.10)."""


def auth_findings(path: Path, auth: AuthSection, *, vrrp_version: int) -> Iterator[Finding]:
    """Yield the contradictions below `auth`, which is at `path`."""
    both: tuple[Path, ...] = ((*path, "pass"), (*path, "hmac"), (*path[:-1], "version"))
    if (auth.password is None) == (auth.hmac is None):
        message = "must have either `pass` (version 2) or `hmac`"
        yield error(path, message, *both)
        return
    if auth.password is not None and vrrp_version == 3:
        message = "version 3 has no passwords (RFC 9568 s.9): use `hmac`, or `version: 2`"
        yield key_error((*path, "pass"), message, *both)
    elif auth.password is not None and len(auth.password.encode()) > PASSWORD_SIZE:
        message = (
            f"only the first {PASSWORD_SIZE} bytes count: any password that begins with them is accepted, "
            "as with keepalived"
        )
        yield warning((*path, "pass"), message)
    if auth.hmac is None:
        return
    if auth.hmac.time_window is not None and auth.hmac.anti_replay is AntiReplay.MONOTONIC:
        message = "has no effect with `anti_replay: monotonic`, which uses no clock"
        yield warning((*path, "hmac", "time_window"), message, (*path, "hmac", "anti_replay"))
    keys = auth.hmac.keys
    if auth.hmac.send is None and len(keys) > 1:
        message = "must name the key that signs: for example `send: 1`"
        yield error((*path, "hmac"), message, (*path, "hmac", "send"))
    if auth.hmac.send is not None and str(auth.hmac.send) not in keys:
        message = f"there is no key `{auth.hmac.send}`: known are {', '.join(keys)}"
        yield error((*path, "hmac", "send"), message, (*path, "hmac", "keys"))


def conflicts(config: Config) -> Iterator[Finding]:
    """Yield contradictions between virtual IPs: of router ids, addresses, and sync groups with one member."""
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


_MOST_CENTISECONDS: Final = 4095  # 12 bits: Max Advertise Interval, RFC 9568 section 5.2.7


def findings(config: Config) -> Iterator[Finding]:
    """Yield the contradictions within each virtual IP."""
    for name, given in config.virtual_ips.items():
        yield from _entry(name, given, config)


def _entry(name: str, given: VirtualIpSection, config: Config) -> Iterator[Finding]:
    path: Path = ("virtual_ips", name)
    if len(given.families) > 1:
        yield Finding(path=(*path, "addresses"), message=_two_families(name, given))
        return
    yield from _id(name, given, config)
    yield from _elsewhere(path, given)
    if not given.addresses and not given.excluded and not _tells(given):
        message = (
            "is empty, and `notify` has no command: add an address, such as `10.0.0.200/24`, or a command"
        )
        yield Finding(path=(*path, "addresses"), message=message)
    yield from _version(path, given)
    if given.auth:
        yield from auth_findings((*path, "auth"), given.auth, vrrp_version=given.vrrp_version)
    yield from _routers(path, given)
    yield from _priority(path, given)
    yield from _times(path, given)
    yield from track_findings(path, given, config)


def _two_families(name: str, given: VirtualIpSection) -> str:
    halves = (
        f"`{name}-v{family}: {{ addresses: [{', '.join(_of(family, given))}], sync_group: {name}, ... }}`"
        for family in sorted(given.families)
    )
    return (
        "has IPv4 and IPv6 addresses, but a virtual router advertises one family: write "
        f"{' and '.join(halves)}, or have those of one family in `excluded`"
    )


def _of(family: int, given: VirtualIpSection) -> Iterator[str]:
    return (
        f'"{each}"' if family == 6 else each for each in given.addresses if (":" in each) == (family == 6)
    )


def _tells(given: VirtualIpSection) -> bool:
    """Return whether its state has any effect: an election without addresses is held only for that."""
    notify = given.notify
    commands = (notify.active, notify.backup, notify.fault, notify.stop, notify.any)
    notified = any(commands) or notify.fifo is not None or given.sync_group is not None
    return notified or bool(given.routes or given.rules)


def _elsewhere(path: Path, given: VirtualIpSection) -> Iterator[Finding]:
    """Refuse addresses on other interfaces together with a MAC address that only one interface can have."""
    others = [each for each in given.elsewhere if each[1] != given.interface]
    if given.virtual_mac and others:
        address, interface = others[0]
        message = (
            f"applies only to `{given.interface}`, and {address} is on `{interface}`: remove one of the "
            "two, or make the address a separate entry, with that `interface` and the same `sync_group`"
        )
        yield error((*path, "virtual_mac"), message, (*path, "addresses"), (*path, "excluded"))


def _id(name: str, given: VirtualIpSection, config: Config) -> Iterator[Finding]:
    path: Path = ("virtual_ips", name, "router_id")
    if given.router_id is not None:
        return
    if not config.cluster.name:
        message = "`auto` derives the id from `cluster.name`, which is missing: set it, or an id of 1 to 255"
        yield Finding(path=path, message=message, touches=(("cluster",),))
    elif not router_id(given.router_id, name, cluster=config.cluster.name):
        message = (
            "`auto` has ids for `api` and `ingress`, and names that continue with a hyphen, not for "
            f"`{name}`: set an id of 1 to 255"
        )
        yield Finding(path=path, message=message)


def _version(path: Path, given: VirtualIpSection) -> Iterator[Finding]:
    six = given.families == (6,)
    if six and given.version == 2:
        message = "version 2 has no IPv6: set `version: 3`, or leave it out"
        yield Finding(path=(*path, "version"), message=message)
        return
    centiseconds = round(given.advert * 100, 6)
    if given.vrrp_version == 2 and given.advert % 1:
        message = f"version 2 has whole seconds, not {given.advert:g}s: `version: 3` has hundredths"
        yield error((*path, "advert"), message, (*path, "version"))
    if given.vrrp_version == 3 and centiseconds > _MOST_CENTISECONDS:
        message = f"version 3 has at most 40.95s, not {given.advert:g}s"
        yield error((*path, "advert"), message, (*path, "version"))
    elif given.vrrp_version == 3 and centiseconds % 1:
        message = f"version 3 has hundredths of a second, `10ms`, `20ms`, not {given.advert * 1000:g}ms"
        yield error((*path, "advert"), message, (*path, "version"))
    if "checksum" in given.model_fields_set and (six or given.vrrp_version == 2):
        message = "has no effect here: only version 3 over IPv4 has two forms"
        yield key_error((*path, "checksum"), message, (*path, "version"))
    if given.label is not None and six:
        yield key_error((*path, "label"), "has no effect on IPv6: the kernel has labels for IPv4 only")


def _routers(path: Path, given: VirtualIpSection) -> Iterator[Finding]:
    """Judge the addresses of the routers: peers and our own."""
    held = {each.partition("/")[0] for each in (*given.addresses, *given.excluded)}
    seen: set[str] = set()
    for index, peer in enumerate(given.peers):
        where: Path = (*path, "peers", index)
        if (":" in peer) != (given.families == (6,)):
            yield error(where, f"`{peer}` is not of the addresses' family", (*path, "addresses"))
        if peer in held:
            yield error(where, f"`{peer}` is the virtual IP itself, not a router", (*path, "addresses"))
        if peer == given.source:
            yield error(
                where, f"`{peer}` is `source`, this node's own address: name the others", (*path, "source")
            )
        if peer in seen:
            yield Finding(path=where, message=f"`{peer}` is listed already")
        seen.add(peer)
    if "min_ttl" in given.model_fields_set and not given.peers:
        message = "has no effect on multicast, which always uses 255: it belongs to `peers`"
        yield key_error((*path, "min_ttl"), message, (*path, "peers"))
    if given.source is None:
        return
    if (":" in given.source) != (given.families == (6,)):
        message = f"`{given.source}` is not of the addresses' family"
        yield error((*path, "source"), message, (*path, "addresses"))
    if given.source in held and given.priority != OWNER_PRIORITY:
        message = f"`{given.source}` is the virtual IP itself, which a backup does not have"
        yield error((*path, "source"), message, (*path, "addresses"), (*path, "priority"))


def _priority(path: Path, given: VirtualIpSection) -> Iterator[Finding]:
    if not given.preempt and given.preempt_delay:
        yield warning((*path, "preempt_delay"), "has no effect with `preempt: false`", (*path, "preempt"))
    if given.priority != OWNER_PRIORITY:
        return
    if not given.preempt or given.preempt_delay:
        key = "preempt_delay" if given.preempt else "preempt"
        message = "has no effect with `priority: 255`: the owner always takes over"
        yield warning((*path, key), message, (*path, "priority"))
    if any(track.weight for track in given.track.values()):
        message = "255 is the owner's, which no weight changes: 254 is the highest that weights apply to"
        yield warning((*path, "priority"), message, (*path, "track"))


def _times(path: Path, given: VirtualIpSection) -> Iterator[Finding]:
    if given.hand_over is not None and given.hand_over < given.skew_base:
        message = (
            f"a successor of low priority waits up to {given.skew_base:g}s before it takes over: the "
            "address would be gone by then"
        )
        yield warning((*path, "hand_over"), message, (*path, "version"), (*path, "advert"))
    if "refresh_repeat" in given.announce.model_fields_set and not given.announce.refresh:
        message = "has no effect without `refresh`"
        yield warning((*path, "announce", "refresh_repeat"), message, (*path, "announce", "refresh"))
