"""What no single key of `virtual_ips` can tell: versions, families, router ids, peers, and what is watched.

Errors are what two routers could not agree on, or what could not work; warnings what is probably not meant.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import Final

from appliance.model.config.configuration import Config
from appliance.model.config.virtual_ips import AuthSection, VirtualIpSection
from appliance.model.messages.problems import Finding, FindingTarget, Path, dotted
from appliance.model.rules.references import warning
from appliance.model.rules.track_rules import track_findings
from appliance.model.snapshot.virtual_router import AntiReplay
from appliance.model.snapshot.virtual_router_defaults import router_id

OWNER: Final = 255
"""Priority of the router that owns the addresses (RFC 9568 section 5.2.4)."""

PASSWORD_SIZE: Final = 8
"""Bytes of a password that an advertisement has room for (RFC 2338 section 5.3.10)."""

_MOST_HUNDREDTHS: Final = 4095  # 12 bits, RFC 9568 section 5.2.7


def router_findings(config: Config) -> Iterator[Finding]:
    """Yield all that does not fit together in and around the virtual IPs."""
    entries = config.virtual_ips.items()
    return chain(
        chain.from_iterable(_entry(name, given, config) for name, given in entries),
        _same_ids(config),
        _same_addresses(config),
        _lonely(config),
    )


def _entry(name: str, given: VirtualIpSection, config: Config) -> Iterator[Finding]:
    path: Path = ("virtual_ips", name)
    if len(given.families) > 1:
        yield Finding(path=(*path, "addresses"), message=_two_families(name, given))
        return
    yield from _id(name, given, config)
    yield from _version(path, given)
    if given.auth:
        yield from _auth((*path, "auth"), given.auth, spoken=given.spoken)
    yield from _routers(path, given)
    yield from _priority(path, given)
    yield from _times(path, given)
    yield from track_findings(path, given, config)


def _two_families(name: str, given: VirtualIpSection) -> str:
    halves = (
        f"`{name}-v{family}: {{ addresses: [{', '.join(_of(family, given))}], sync_group: {name}, ... }}`"
        for family in sorted(given.families)
    )
    return f"has IPv4 and IPv6 addresses, but a virtual router has one family: write {' and '.join(halves)}"


def _of(family: int, given: VirtualIpSection) -> Iterator[str]:
    addresses = (*given.addresses, *given.excluded)
    return (f'"{each}"' if family == 6 else each for each in addresses if (":" in each) == (family == 6))


def _id(name: str, given: VirtualIpSection, config: Config) -> Iterator[Finding]:
    path: Path = ("virtual_ips", name, "router_id")
    if given.router_id is not None:
        return
    if not config.cluster.name:
        message = "`auto` derives the id from `cluster.name`, which is missing: say it, or an id of 1 to 255"
        yield Finding(path=path, message=message, touches=(("cluster",),))
    elif not router_id(name, given, cluster=config.cluster.name):
        message = (
            f"`auto` has ids for `api` and `ingress`, and names that go on with a hyphen, not for `{name}`: "
            "say an id of 1 to 255"
        )
        yield Finding(path=path, message=message)


def _version(path: Path, given: VirtualIpSection) -> Iterator[Finding]:
    six = given.families == (6,)
    if six and given.version == 2:
        message = "version 2 has no IPv6: `version: 3`, or leave it out"
        yield Finding(path=(*path, "version"), message=message)
        return
    hundredths = round(given.advert * 100, 6)
    if given.spoken == 2 and given.advert % 1:
        message = f"version 2 counts whole seconds, not {given.advert:g}s: `version: 3` has hundredths"
        yield _said((*path, "advert"), message, (*path, "version"))
    if given.spoken == 3 and hundredths > _MOST_HUNDREDTHS:
        message = f"version 3 has at most 40.95s, not {given.advert:g}s"
        yield _said((*path, "advert"), message, (*path, "version"))
    elif given.spoken == 3 and hundredths % 1:
        message = f"version 3 counts hundredths of a second, `10ms`, `20ms`, not {given.advert * 1000:g}ms"
        yield _said((*path, "advert"), message, (*path, "version"))
    if "checksum" in given.model_fields_set and (six or given.spoken == 2):
        message = "means nothing here: only version 3 over IPv4 has two forms"
        yield _key((*path, "checksum"), message, (*path, "version"))
    if given.label is not None and six:
        yield _key((*path, "label"), "means nothing to IPv6: the kernel has labels for IPv4 only")


def _auth(path: Path, auth: AuthSection, *, spoken: int) -> Iterator[Finding]:
    both: tuple[Path, ...] = ((*path, "pass"), (*path, "hmac"), (*path[:-1], "version"))
    if (auth.password is None) == (auth.hmac is None):
        message = "must say `pass` (version 2) or `hmac`, one of them"
        yield _said(path, message, *both)
        return
    if auth.password is not None and spoken == 3:
        message = "version 3 has no passwords (RFC 9568 s.9): `hmac`, or `version: 2`"
        yield _key((*path, "pass"), message, *both)
    elif auth.password is not None and len(auth.password) > PASSWORD_SIZE:
        message = (
            f"only the first {PASSWORD_SIZE} bytes count: whoever shares them passes, as with keepalived"
        )
        yield warning((*path, "pass"), message)
    if auth.hmac is None:
        return
    if auth.hmac.time_window is not None and auth.hmac.anti_replay is AntiReplay.MONOTONIC:
        message = "means nothing with `anti_replay: monotonic`, which looks at no clock"
        yield warning((*path, "hmac", "time_window"), message, (*path, "hmac", "anti_replay"))
    keys = auth.hmac.keys
    if auth.hmac.send is None and len(keys) > 1:
        message = "must say which of the keys signs: for example `send: 1`"
        yield _said((*path, "hmac"), message, (*path, "hmac", "send"))
    if auth.hmac.send is not None and str(auth.hmac.send) not in keys:
        message = f"there is no key `{auth.hmac.send}`: known are {', '.join(keys)}"
        yield _said((*path, "hmac", "send"), message, (*path, "hmac", "keys"))


def _routers(path: Path, given: VirtualIpSection) -> Iterator[Finding]:
    """Judge the addresses of the routers: peers and our own."""
    held = {each.partition("/")[0] for each in (*given.addresses, *given.excluded)}
    seen: set[str] = set()
    for index, peer in enumerate(given.peers):
        where: Path = (*path, "peers", index)
        if (":" in peer) != (given.families == (6,)):
            yield _said(where, f"`{peer}` is not of the family of the addresses", (*path, "addresses"))
        if peer in held:
            yield _said(where, f"`{peer}` is the virtual IP itself, not a router", (*path, "addresses"))
        if peer == given.source:
            yield _said(where, f"`{peer}` is `source`, our own address: name the others", (*path, "source"))
        if peer in seen:
            yield Finding(path=where, message=f"`{peer}` stands there already")
        seen.add(peer)
    if "min_ttl" in given.model_fields_set and not given.peers:
        message = "means nothing to multicast, which always has 255: it belongs to `peers`"
        yield _key((*path, "min_ttl"), message, (*path, "peers"))
    if given.source is None:
        return
    if (":" in given.source) != (given.families == (6,)):
        message = f"`{given.source}` is not of the family of the addresses"
        yield _said((*path, "source"), message, (*path, "addresses"))
    if given.source in held and given.priority != OWNER:
        message = f"`{given.source}` is the virtual IP itself, which a backup does not have"
        yield _said((*path, "source"), message, (*path, "addresses"), (*path, "priority"))


def _priority(path: Path, given: VirtualIpSection) -> Iterator[Finding]:
    if not given.preempt and given.preempt_delay:
        yield warning((*path, "preempt_delay"), "means nothing with `preempt: false`", (*path, "preempt"))
    if given.priority != OWNER:
        return
    if not given.preempt or given.preempt_delay:
        key = "preempt_delay" if given.preempt else "preempt"
        message = "means nothing with `priority: 255`: the owner always takes over"
        yield warning((*path, key), message, (*path, "priority"))
    if any(track.weight for track in given.track.values()):
        message = "255 is the owner's, which no weight changes: 254 is the highest that weights act on"
        yield warning((*path, "priority"), message, (*path, "track"))


def _times(path: Path, given: VirtualIpSection) -> Iterator[Finding]:
    if given.hand_over is not None and given.hand_over < given.skew_base:
        message = (
            f"a successor of low priority waits up to {given.skew_base:g}s before it takes over: "
            "the address would be gone before"
        )
        yield warning((*path, "hand_over"), message, (*path, "version"), (*path, "advert"))
    if "refresh_repeat" in given.announce.model_fields_set and not given.announce.refresh:
        message = "means nothing without `refresh`"
        yield warning((*path, "announce", "refresh_repeat"), message, (*path, "announce", "refresh"))


def _same_ids(config: Config) -> Iterator[Finding]:
    """Tell ids that two entries share where both would hear the same advertisements."""
    taken: dict[tuple[object, ...], list[tuple[str, VirtualIpSection]]] = defaultdict(list)
    for name, given in config.virtual_ips.items():
        number = router_id(name, given, cluster=config.cluster.name)
        others = taken[given.interface, given.families, number]
        first = next((each for each, other in others if _hear_each_other(given, other)), None)
        if number and first is not None:
            touches: tuple[Path, ...] = (("virtual_ips", first), ("cluster",))
            message = (
                f"{number} is the id of `{first}` on `{given.interface}` already: "
                "routers would take one for the other"
            )
            yield _said(("virtual_ips", name, "router_id"), message, *touches)
        others.append((name, given))


def _hear_each_other(one: VirtualIpSection, other: VirtualIpSection) -> bool:
    """Tell whether an advertisement may be of either: not where all unicast peers differ."""
    return not (one.peers and other.peers and set(one.peers).isdisjoint(other.peers))


def _same_addresses(config: Config) -> Iterator[Finding]:
    seen: dict[str, Path] = {}
    for name, given in config.virtual_ips.items():
        places = ("addresses", given.addresses), ("excluded", given.excluded)
        for key, index, each in ((key, *item) for key, found in places for item in enumerate(found)):
            path: Path = ("virtual_ips", name, key, index)
            first = seen.setdefault(each.partition("/")[0], path)
            if first != path:
                yield _said(path, f"`{each}` is there already: {dotted(first)}", first)


def _lonely(config: Config) -> Iterator[Finding]:
    groups: dict[str, list[str]] = defaultdict(list)
    for name, given in config.virtual_ips.items():
        if given.sync_group is not None:
            groups[given.sync_group].append(name)
    for group, names in groups.items():
        if len(names) == 1:
            message = f"no other virtual IP is in the group `{group}`: it means nothing"
            yield warning(("virtual_ips", names[0], "sync_group"), message, ("virtual_ips",))


def _said(path: Path, message: str, *touches: Path) -> Finding:
    return Finding(path=path, message=message, touches=touches)


def _key(path: Path, message: str, *touches: Path) -> Finding:
    return Finding(path=path, message=message, spot=FindingTarget.KEY, touches=touches)
