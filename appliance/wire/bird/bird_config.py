"""BIRD's configuration for the accepted one: neighbours are sent the routes in two tables of the kernel.

The routes in the table `serve` are announced as they are, those in `drain` with GRACEFUL_SHUTDOWN. Nothing
is learnt from neighbours or written to the kernel. Routers have several paths to an address only if their
attributes are equal, so all nodes announce origin IGP and no MED, as BIRD does by itself.

Every text from the file is a name, an address or a number in a form that `model.config.values.bgp` has
checked, apart from passwords: `password` checks those.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from appliance.model.config.values.bgp import is_password
from appliance.model.snapshot.shared_ip import Bgp, Neighbor, SharedIp

PROTOCOL: Final = 248
"""rtm_protocol of the routes (kube-vip's); 186 to 198 are FRR's own (zebra/rt_netlink.h)."""

_FAMILIES: Final[tuple[Literal[4, 6], ...]] = (4, 6)
_SCAN: Final = 10
_LONGEST_LOG: Final = 1 << 18  # bytes, after which the log is renamed, and another one begins
_SHUTDOWN: Final = "(65535, 0)"  # GRACEFUL_SHUTDOWN, RFC 8326 section 4.1


class BirdConfigError(Exception):
    """A value that BIRD's language cannot have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BirdSettings:
    """What a configuration is made of.

    `passwords` are by the neighbours' names, and so are `sources`, this node's addresses towards those for
    which BIRD requires one (`needs_source`). `log` is the path of BIRD's log.
    """

    bgp: Bgp
    shared: tuple[SharedIp, ...]
    router_id: str
    passwords: Mapping[str, str]
    sources: Mapping[str, str]
    log: str


def needs_source(neighbor: Neighbor, bgp: Bgp) -> bool:
    """Return whether BIRD requires this node's address: for BFD over several hops."""
    return neighbor.bfd is not None and not is_direct(neighbor, bgp)


def is_direct(neighbor: Neighbor, bgp: Bgp) -> bool:
    """Return whether a session crosses no router; an internal one may."""
    return "%" in neighbor.address or (neighbor.multihop is None and neighbor.asn != bgp.asn)


def protocol(neighbor: str) -> str:
    """Return the name of the protocol of a neighbour in BIRD: letters, digits and underscores."""
    return "bgp_" + "".join(
        each if each.isalnum() and each.isascii() else f"_{ord(each):x}_" for each in neighbor
    )


def bird_config(settings: BirdSettings) -> str:
    """Return the configuration; raises BirdConfigError for a password that cannot be written."""
    return "\n".join((*_lines(settings), ""))


def _lines(settings: BirdSettings) -> Iterator[str]:
    bgp = settings.bgp
    yield f"router id {settings.router_id};"
    classes = "{ info, remote, warning, error, auth, fatal, bug }"
    yield f'log "{settings.log}" {_LONGEST_LOG} "{settings.log}.1" {classes};'
    if bgp.graceful_restart:
        yield f"graceful restart wait {bgp.graceful_restart};"
    yield f"protocol device {{ scan time {_SCAN}; }}"
    yield "protocol bfd { }"
    for family in _FAMILIES:
        if listed := ", ".join(sorted(each for one in settings.shared for each in _of(one, family))):
            yield from _tables(family, bgp, listed)
    for neighbor in bgp.neighbors:
        yield from _neighbor(neighbor, settings)


def _tables(family: Literal[4, 6], bgp: Bgp, listed: str) -> Iterator[str]:
    """Yield the protocols that read both tables of the kernel, and add the drained routes to the served ones.

    An address in both is served: that route has the higher preference.
    """
    for name, table, preference in (("serve", bgp.serve, 20), ("drain", bgp.drain, 10)):
        yield f"ipv{family} table {name}{family};"
        yield f"protocol kernel read_{name}{family} {{"
        yield f"  kernel table {table}; learn; scan time {_SCAN};"
        yield f"  ipv{family} {{ table {name}{family}; preference {preference}; export none;"
        yield f"    import where krt_source = {PROTOCOL} && net ~ [ {listed} ]; }};"
        yield "}"
    yield f"protocol pipe drained{family} {{"
    yield f"  table serve{family}; peer table drain{family}; export none;"
    yield f"  import filter {{ bgp_community.add({_SHUTDOWN}); accept; }};"
    yield "}"


def _neighbor(neighbor: Neighbor, settings: BirdSettings) -> Iterator[str]:
    bgp = settings.bgp
    yield f"protocol bgp {protocol(neighbor.name)} {{"
    source = settings.sources.get(neighbor.name)
    yield f"  local {source} as {bgp.asn};" if source else f"  local as {bgp.asn};"
    yield f"  neighbor {neighbor.address} port {neighbor.port} as {neighbor.asn};"
    if neighbor.name in settings.passwords:
        secret = settings.passwords[neighbor.name]
        if not is_password(secret):
            raise BirdConfigError(f"the password of `{neighbor.name}` has characters that BIRD cannot have")
        yield f'  password "{secret}";'
    yield f"  hold time {neighbor.hold}; keepalive time {max(1, neighbor.hold // 3)};"
    yield "  connect delay time 1; connect retry time 5; error wait time 1, 4;"
    if neighbor.multihop is not None:
        yield f"  multihop {neighbor.multihop};"
    elif is_direct(neighbor, bgp):
        yield "  direct;"
    if neighbor.ttl_security:
        yield "  ttl security on;"
    if neighbor.bfd is not None:
        times = f"interval {round(neighbor.bfd.interval * 1000)} ms; multiplier {neighbor.bfd.multiplier};"
        yield f"  bfd {{ {times} }};"
    if bgp.graceful_restart:
        yield f"  graceful restart on; graceful restart time {bgp.graceful_restart};"
    mine = [each for each in settings.shared if not each.neighbors or neighbor.name in each.neighbors]
    for family in neighbor.families:
        yield from _channel(family, mine, extended=family == 4 and ":" in neighbor.address)
    yield "}"


def _channel(family: Literal[4, 6], shared: Iterable[SharedIp], *, extended: bool) -> Iterator[str]:
    groups = [(each, _of(each, family)) for each in shared]
    if not any(nets for _, nets in groups):
        return
    next_hop = "next hop self; extended next hop on;" if extended else "next hop self;"
    yield f"  ipv{family} {{ table serve{family}; import none; {next_hop} export filter {{"
    for each, nets in groups:
        if nets:
            added = "".join(
                f"bgp_community.add(({high}, {low})); "
                for high, low in [each.split(":") for each in each.communities]
            )
            yield f"    if net ~ [ {', '.join(nets)} ] then {{ {added}accept; }}"
    yield "    reject; }; };"


def _of(shared: SharedIp, family: Literal[4, 6]) -> list[str]:
    return sorted(each for each in shared.addresses if (":" in each) == (family == 6))
