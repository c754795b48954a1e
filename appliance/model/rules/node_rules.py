"""What one file for several nodes means at each: the priorities of what is spread, and the others as peers.

Every node has the same file, so each computes the same order of nodes for every virtual IP. The virtual IPs
that have the same node first have different nodes second: those of a lost node go to all others. OpenShift's
`oc adm ipfailover` spreads by place too, but there "may be nodes with no VIPs and others with many".
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from appliance.model.config.bgp import BgpSection
from appliance.model.config.configuration import Config, NodeSection
from appliance.model.config.linger import LingerSection
from appliance.model.config.virtual_ips import SpreadSection, VirtualIpSection
from appliance.model.messages.problems import Finding, Path
from appliance.model.rules.findings import error, key_error

FIRST: Final = 250
"""Priority of the node that is first."""

_STEP: Final = 50
_LOWEST: Final = 50


def own_name(nodes: Sequence[str], node: str) -> str | None:
    """Return the name among `nodes` of the node with this host name, with or without its domain."""
    return next((each for each in (node, node.partition(".")[0]) if each in nodes), None)


def order(routers: Mapping[str, VirtualIpSection], every: Sequence[str] = ()) -> dict[str, tuple[str, ...]]:
    """Return for each virtual IP that is spread its nodes, the first first; `every` are all nodes.

    Those of a sync group have the same order, as they move together. Nodes that are named as `first` are
    counted before the others take their turns. The order of the mapping means nothing.
    """
    units: dict[str, tuple[SpreadSection, list[str]]] = {}
    for name, each in sorted(routers.items()):
        if (spread := each.spreading) and len(_nodes(spread, every)) > 1:
            units.setdefault(each.sync_group or name, (spread, []))[1].append(name)
    turns = Counter((_nodes(spread, every), spread.first) for spread, _ in units.values())
    seconds: Counter[tuple[tuple[str, ...], str]] = Counter()
    found: dict[str, tuple[str, ...]] = {}
    for spread, names in units.values():
        nodes, first = _nodes(spread, every), spread.first
        if first is None or first not in nodes:
            first = min(nodes, key=lambda node: turns[nodes, node])  # called at once
            turns[nodes, first] += 1
        at = nodes.index(first)
        others = (*nodes[at + 1 :], *nodes[:at])
        turn = seconds[nodes, first] % len(others)
        seconds[nodes, first] += 1
        found |= dict.fromkeys(names, (first, *others[turn:], *others[:turn]))
    return found


def priority(nodes: Sequence[str], node: str) -> int:
    """Return the priority of a node in the order of one virtual IP: steps of 50 for up to five nodes."""
    step = min(_STEP, (FIRST - _LOWEST) // (len(nodes) - 1))
    return FIRST - step * nodes.index(node)


def at_node(config: Config, node: str | None) -> Config:
    """Return the configuration with the priorities, peers and neighbours that a node has.

    For None these are those of the first node. What this node is no member of stays as it is; `findings`
    reports it.
    """
    routers = {name: _with_peers(given, config.nodes, node) for name, given in config.virtual_ips.items()}
    for name, nodes in order(routers, tuple(config.nodes)).items():
        own = nodes[0] if node is None else own_name(nodes, node)
        if own is not None:
            routers[name] = routers[name].model_copy(update={"priority": priority(nodes, own)})
    linger = config.linger
    if linger is not None and config.shared_ips:
        linger = _lingering(linger, config.nodes, node)
    bgp = config.bgp and _announcing(config.bgp, tuple(config.nodes), node)
    return config.model_copy(update={"virtual_ips": routers, "linger": linger, "bgp": bgp})


def _lingering(given: LingerSection, nodes: Mapping[str, NodeSection], node: str | None) -> LingerSection:
    """Return the section with the other nodes' addresses as peers, unless it names some."""
    own = _own(tuple(nodes), node)
    if own is None or "peers" in given.model_fields_set:
        return given
    others = (each for name, each in nodes.items() if name != own)
    peers = tuple(address for each in others for address in (each.address, each.ipv6) if address)
    return given.model_copy(update={"peers": peers})


def _announcing(given: BgpSection, nodes: Sequence[str], node: str | None) -> BgpSection:
    """Return the section with the neighbours that this node has."""
    own = _own(nodes, node) or node or ""
    ours = {
        name: each
        for name, each in given.neighbors.items()
        if not each.nodes or own_name(each.nodes, own) is not None
    }
    return given.model_copy(update={"neighbors": ours})


def _own(nodes: Sequence[str], node: str | None) -> str | None:
    return next(iter(nodes), None) if node is None else own_name(nodes, node)


def findings(config: Config, *, node: str | None) -> Iterator[Finding]:
    """Yield what is wrong with `nodes` and `spread`, before they are used."""
    if config.nodes and node is not None and own_name(tuple(config.nodes), node) is None:
        yield error(("nodes",), _stranger(node))
    routers = config.virtual_ips
    leaders = {each.sync_group: name for name, each in routers.items() if each.spreading and each.sync_group}
    for name, given in routers.items():
        path: Path = ("virtual_ips", name, _key(given))
        leader = leaders.get(given.sync_group or "", name)
        if routers[leader].spreading != given.spreading:
            message = f"differs from that of `{leader}`, which is in the same `sync_group`"
            there = ("virtual_ips", leader, _key(routers[leader]))
            yield error(path, message, there, (*path[:2], "sync_group"))
        if given.prefer is not None and given.spread is not None:
            yield key_error((*path[:2], "prefer"), "`spread` has `first` for it: remove one of the two", path)
        if given.spreading is not None:
            if "priority" in given.model_fields_set:
                message = f"`{path[2]}` computes it: remove one of the two"
                yield key_error((*path[:2], "priority"), message, path)
            yield from _spread(path, given.spreading, tuple(config.nodes), node)
    if config.bgp and config.nodes:
        yield from _neighbors(config.bgp, tuple(config.nodes))


def _neighbors(bgp: BgpSection, nodes: Sequence[str]) -> Iterator[Finding]:
    for name, neighbor in bgp.neighbors.items():
        for at, each in enumerate(neighbor.nodes):
            if each not in nodes:
                message = f"`{each}` is not one of the file's `nodes`: {', '.join(nodes)}"
                yield error(("bgp", "neighbors", name, "nodes", at), message, ("nodes",))


def _key(given: VirtualIpSection) -> str:
    """Return the key by which the priorities of a virtual IP are computed."""
    return "prefer" if given.spread is None and given.prefer is not None else "spread"


def _spread(path: Path, spread: SpreadSection, every: tuple[str, ...], node: str | None) -> Iterator[Finding]:
    nodes = _nodes(spread, every)
    if len(nodes) < 2:
        message = "has no nodes: name two or more in `nodes`, here or for the whole file"
        if path[-1] == "prefer":
            message = "has no nodes to choose among: name two or more in `nodes` of the file"
        yield error(path, message, (*path, "nodes"), ("nodes",))
        return
    if spread.first not in (None, *nodes):
        message = f"`{spread.first}` is not one of the nodes: {', '.join(nodes)}"
        where = path if path[-1] == "prefer" else (*path, "first")
        yield error(where, message, (*path, "nodes"), ("nodes",))
    if every:
        for name in nodes:
            if name not in every:
                message = f"`{name}` is not one of the file's `nodes`: {', '.join(every)}"
                yield error((*path, "nodes"), message, ("nodes",))
    elif node is not None and own_name(nodes, node) is None:
        yield error((*path, "nodes"), _stranger(node))


def _stranger(node: str) -> str:
    return f"this node is `{node}`, which is not one of them: set APPLIANCE_NODE to the name of this node"


def _nodes(spread: SpreadSection, every: Sequence[str]) -> tuple[str, ...]:
    return tuple(every) if spread.nodes is None else spread.nodes


def _with_peers(
    given: VirtualIpSection, nodes: Mapping[str, NodeSection], node: str | None
) -> VirtualIpSection:
    """Return a virtual IP with the other nodes as peers, unless it names some or a node has no address."""
    own = _own(tuple(nodes), node)
    found = {name: _address(each, six=6 in given.families) for name, each in nodes.items()}
    if own is None or len(nodes) < 2 or None in found.values() or "peers" in given.model_fields_set:
        return given
    peers = tuple(address for name, address in found.items() if name != own)
    source = given.source if "source" in given.model_fields_set else found[own]
    return given.model_copy(update={"peers": peers, "source": source})


def _address(node: NodeSection, *, six: bool) -> str | None:
    return next((each for each in (node.address, node.ipv6) if each and (":" in each) == six), None)
