"""Rules for `source` of pools: the ports from which each node connects to servers as a virtual IP.

After a move two nodes have connections from one address: were their ports the same too, a server would take a
packet of one node for the other's. So each of `nodes` has its part of the ports.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from appliance.model.config.configuration import Config
from appliance.model.messages.problems import Finding, Path
from appliance.model.rules.findings import warning
from appliance.model.rules.node_rules import own_name
from appliance.model.snapshot.pools import SOURCE_PORTS, SourceAddress


def ports_of(node: str, nodes: Sequence[str]) -> tuple[int, int]:
    """Return a node's part of the ports: equal ones, in the order of the names, so that all nodes agree."""
    low, high = SOURCE_PORTS
    size = (high - low + 1) // len(nodes)
    first = low + size * sorted(nodes).index(node)
    return first, first + size - 1


def ports_at(node: str | None, nodes: Sequence[str]) -> tuple[int, int]:
    """Return the ports of the node with this host name, for None those of the first; without `nodes` all."""
    own = next(iter(nodes), None) if node is None else own_name(nodes, node)
    return SOURCE_PORTS if own is None else ports_of(own, nodes)


def common_ports(configs: Mapping[str, Config]) -> Iterator[Finding]:
    """Yield the pools for which two nodes have ports in common; `configs` are those of all nodes by name."""
    for name in dict.fromkeys(name for each in configs.values() for name in each.pools):
        ports = {
            node: pool.source_ports or ports_of(node, tuple(configs))
            for node, pool in ((node, config.pools.get(name)) for node, config in configs.items())
            if pool is not None and pool.source is SourceAddress.VIRTUAL_IP
        }
        pairs = combinations(ports, 2)
        meeting = next((each for each in pairs if _overlap(ports[each[0]], ports[each[1]])), None)
        if meeting is not None:
            message = (
                f"`{meeting[0]}` and `{meeting[1]}` have ports in common: after a move both may connect from "
                "the same address and port"
            )
            yield warning(("pools", name, "source_ports"), message, ("nodes",))


def _overlap(one: tuple[int, int], two: tuple[int, int]) -> bool:
    return one[0] <= two[1] and two[0] <= one[1]


def findings(config: Config) -> Iterator[Finding]:
    """Yield what has no effect, and ports that nodes may have in common as they are not named."""
    for name, pool in config.pools.items():
        path: Path = ("pools", name)
        if pool.source is SourceAddress.NODE:
            if "source_ports" in pool.model_fields_set:
                message = "has no effect with `source: node`, only with `virtual-ip`"
                yield warning((*path, "source_ports"), message, (*path, "source"))
        elif not config.virtual_ips and not (config.shared_ips and config.linger and config.linger.sessions):
            message = "has no effect: there are no `virtual_ips`"
            shared = (
                "; sessions of `shared_ips` connect from the node without `linger.sessions`"
                if config.shared_ips
                else ""
            )
            yield warning((*path, "source"), f"{message}{shared}", ("virtual_ips",))
        elif pool.source_ports is None and not config.nodes:
            message = (
                "after a move two nodes may connect from the same address and port: name all of them in "
                "`nodes`, or set other `source_ports` at each"
            )
            yield warning((*path, "source"), message, ("nodes",), (*path, "source_ports"))
