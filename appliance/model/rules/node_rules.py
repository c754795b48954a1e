"""Which virtual IP is whose, where they are spread over nodes: from the names of nodes to priorities.

Every node has the same file, so each computes the same order of nodes for every virtual IP. The virtual IPs
that have the same node first have different nodes second: those of a lost node go to all others. OpenShift's
`oc adm ipfailover` spreads by place too, but there "may be nodes with no VIPs and others with many".
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from appliance.model.config.configuration import Config
from appliance.model.config.virtual_ips import SpreadSection, VirtualIpSection
from appliance.model.messages.problems import Finding, Path
from appliance.model.rules.findings import error, key_error

FIRST: Final = 250
"""Priority of the node that is first."""

_STEP: Final = 50
_LOWEST: Final = 50


def order(routers: Mapping[str, VirtualIpSection]) -> dict[str, tuple[str, ...]]:
    """Return for each virtual IP that is spread all its nodes, the first first.

    Those of a sync group have the same order, as they move together. Nodes that are named as `first` are
    counted before the others take their turns. The order of the mapping means nothing.
    """
    spread = {name: each.spread for name, each in sorted(routers.items()) if each.spread}
    units: dict[str, list[str]] = {}
    for name in spread:
        units.setdefault(routers[name].sync_group or name, []).append(name)
    turns = Counter((spread[names[0]].nodes, spread[names[0]].first) for names in units.values())
    seconds: Counter[tuple[tuple[str, ...], str]] = Counter()
    found: dict[str, tuple[str, ...]] = {}
    for names in units.values():
        nodes, first = spread[names[0]].nodes, spread[names[0]].first
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


def own_name(nodes: Sequence[str], node: str) -> str | None:
    """Return the name among `nodes` of the node with this host name, with or without its domain."""
    return next((each for each in (node, node.partition(".")[0]) if each in nodes), None)


def spread_out(config: Config, *, node: str | None) -> Config:
    """Return the configuration with the priorities that this node has; for None those of each first node.

    What this node is no member of stays as it is; `findings` says so.
    """
    routers = dict(config.virtual_ips)
    for name, nodes in order(routers).items():
        own = nodes[0] if node is None else own_name(nodes, node)
        if own is not None:
            routers[name] = routers[name].model_copy(update={"priority": priority(nodes, own)})
    return config.model_copy(update={"virtual_ips": routers})


def findings(config: Config, *, node: str | None) -> Iterator[Finding]:
    """Yield what is wrong with `spread`, before it is used."""
    routers = config.virtual_ips
    leaders = {each.sync_group: name for name, each in routers.items() if each.spread and each.sync_group}
    for name, given in routers.items():
        path: Path = ("virtual_ips", name, "spread")
        leader = leaders.get(given.sync_group or "", name)
        if routers[leader].spread != given.spread:
            message = f"is not that of `{leader}`, which is in the same `sync_group`"
            yield error(path, message, ("virtual_ips", leader, "spread"), (*path[:2], "sync_group"))
        if given.spread is not None:
            yield from _of_one(path, given, given.spread, node)


def _of_one(
    path: Path, given: VirtualIpSection, spread: SpreadSection, node: str | None
) -> Iterator[Finding]:
    if "priority" in given.model_fields_set:
        yield key_error((*path[:2], "priority"), "`spread` computes it: leave one of both out", path)
    if spread.first not in (None, *spread.nodes):
        message = f"`{spread.first}` is none of `nodes`: {', '.join(spread.nodes)}"
        yield error((*path, "first"), message, (*path, "nodes"))
    if node is not None and own_name(spread.nodes, node) is None:
        message = (
            f"this node is `{node}`, which is none of them: name it so, or set APPLIANCE_NODE to one of them"
        )
        yield error((*path, "nodes"), message)
