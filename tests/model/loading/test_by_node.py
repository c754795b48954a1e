"""One file for all nodes: values that differ by node, the other nodes as peers, and what is refused."""

import pytest

from appliance.model.loading.loading import Loaded, load
from appliance.model.snapshot.virtual_router import VirtualRouter

pytestmark = pytest.mark.pure

NODES = """
nodes:
  lb-0: { address: 10.0.0.2, ipv6: "fd00::2" }
  lb-1: { address: 10.0.0.3, ipv6: "fd00::3" }
  lb-2: { address: 10.0.0.4 }
"""
PAIR = """
nodes: { lb-0: { address: 10.0.0.2, ipv6: "fd00::2" }, lb-1: { address: 10.0.0.3, ipv6: "fd00::3" } }
"""
VIP = """
virtual_ips:
  api:
    addresses: [10.0.0.1/24]
    interface: eth0
    router_id: 1
"""

ONE = "virtual_ips.api"


def _load(text: str, node: str | None = "lb-0") -> Loaded:
    return load(text, source="f", number=1, node=node)


def _router(text: str, node: str | None = "lb-0") -> VirtualRouter:
    loaded = _load(text, node)
    assert loaded.snapshot is not None, loaded.problems
    [found] = loaded.snapshot.virtual_routers
    return found


def _errors(text: str, node: str | None = "lb-0") -> list[tuple[int | None, str | None]]:
    return [(each.line, each.path) for each in _load(text, node).errors]


@pytest.mark.parametrize(
    ("node", "priority", "interface"),
    [("lb-0", 150, "eth0"), ("lb-1.example.com", 120, "ens1"), ("lb-2", 100, "eth0"), (None, 150, "eth0")],
)
def test_a_value_may_differ_by_node(node: str | None, priority: int, interface: str):
    """A node that is not named has the default; for no node in particular it is the first one."""
    text = NODES + VIP.replace("eth0", "{ lb-0: eth0, lb-1: ens1, lb-2: eth0 }")
    found = _router(f"{text}    priority: {{ lb-0: 150, lb-1: 120 }}\n", node)

    assert (found.priority, found.interface) == (priority, interface)


def test_lists_and_keys_of_named_things_may_differ():
    """Whatever is no mapping by itself, however deep; the rest of the file is the same everywhere."""
    text = (
        f"{NODES}log: {{ level: {{ lb-1: debug }} }}\n"
        "pools: { p: { retries: 2, servers: { s: { address: '10.0.0.9:1', weight: { lb-1: 7 } } } } }\n"
        "api: { frontends: { f: { pool: p, bind: { lb-0: ['10.0.0.2:1'], lb-1: ['10.0.0.3:1'],"
        " lb-2: ['[::]:1'] } } } }\n"
    )
    first, second = (_load(text, node).snapshot for node in ("lb-0", "lb-1"))
    assert first is not None
    assert second is not None

    assert [each.log.level for each in (first, second)] == ["info", "debug"]
    assert [each.pools[0].servers[0].weight for each in (first, second)] == [1, 7]
    binds = [str(each.groups[0].frontends[0].binds[0]) for each in (first, second)]
    assert binds == ["10.0.0.2:1", "10.0.0.3:1"]


def test_the_other_nodes_are_the_peers():
    """By their addresses of the family, if all have one; what the file says of a virtual IP wins."""
    six = VIP.replace("10.0.0.1/24", '"fd00::1/64"')
    first, last = (_router(NODES + VIP, each) for each in ("lb-0", "lb-2"))

    assert (first.source, first.peers) == ("10.0.0.2", ("10.0.0.3", "10.0.0.4"))
    assert (last.source, last.peers) == ("10.0.0.4", ("10.0.0.2", "10.0.0.3"))
    assert _router(NODES + six).peers == ()  # lb-2 has no address of IPv6
    assert _router(PAIR + six).peers == ("fd00::3",)
    assert _router(f"{NODES}{VIP}    peers: []\n").peers == ()
    assert _router(f"{NODES}{VIP}    source: 10.0.0.22\n").source == "10.0.0.22"
    assert _router(f"nodes: {{ lb-0: {{ address: 10.0.0.2 }} }}\n{VIP}").peers == ()


def test_a_virtual_ip_is_spread_over_all_nodes():
    """Without nodes of its own."""
    text = f"{NODES}{VIP}    spread: {{ first: lb-1 }}\n"

    assert [_router(text, each).priority for each in ("lb-0", "lb-1", "lb-2")] == [150, 250, 200]


def test_what_is_wrong_at_another_node_is_refused_everywhere():
    """All nodes have the file: the error has the place of the value, once, and nothing is accepted."""
    text = f"{NODES}{VIP}    priority: {{ lb-0: 150, lb-1: 300 }}\n    advert: 5\n"

    for node in ("lb-0", "lb-1", "lb-2", None):
        assert _load(text, node).snapshot is None
        assert _errors(text, node) == [(12, f"{ONE}.priority"), (13, f"{ONE}.advert")]


@pytest.mark.parametrize(
    ("text", "node", "found"),
    [
        (NODES, "laptop", [(2, "nodes")]),
        (f"{NODES}{VIP}    priority: {{ lb-0: 150, lb-9: 100 }}\n", "lb-0", [(12, f"{ONE}.priority.lb-9")]),
        (f"{NODES}{VIP}    priority: {{ lb-9: 100 }}\n", "lb-0", [(12, f"{ONE}.priority")]),
        (f"{NODES}{VIP}    spread: {{ nodes: [lb-0, lb-9] }}\n", "lb-0", [(12, f"{ONE}.spread.nodes")]),
        (f"{VIP}    spread: {{}}\n", "lb-0", [(7, f"{ONE}.spread")]),
        (f"{VIP}    priority: {{ lb-0: 150 }}\n", "lb-0", [(7, f"{ONE}.priority")]),
        ("nodes: { lb-0: { adress: 10.0.0.2 } }\n", "lb-0", [(1, "nodes.lb-0.adress")]),
        ("nodes: [lb-0]\n", "lb-0", [(1, "nodes")]),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(text: str, node: str, found: list[object]):
    """Each error names line and key."""
    assert _errors(text, node) == found
