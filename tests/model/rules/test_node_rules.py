"""Virtual IPs that are spread over nodes: who is first, who is next, and what is refused."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.config.virtual_ips import VirtualIpSection
from appliance.model.loading.loading import load
from appliance.model.rules.node_rules import FIRST, order, own_name, priority

pytestmark = pytest.mark.pure

NODES = ("lb-0", "lb-1", "lb-2")


def _router(nodes: tuple[str, ...] = NODES, first: str | None = None, **more: object) -> VirtualIpSection:
    return VirtualIpSection.model_validate(
        {
            "addresses": ["10.0.0.1/24"], "interface": "eth0", "router_id": 1,
            "spread": {"nodes": list(nodes)} | ({"first": first} if first else {}), **more,
        }
    )  # fmt: skip


@given(st.integers(2, 16), st.integers(1, 40))
def test_every_node_has_its_share(count: int, addresses: int):
    """Nodes serve equally many, and the virtual IPs of a lost node go equally to the others."""
    nodes = tuple(f"n{each}" for each in range(count))
    found = order({f"vip-{each:02}": _router(nodes) for each in range(addresses)})

    shares = Counter(each[0] for each in found.values())
    assert max(shares.values()) - min(shares[node] for node in nodes) <= 1
    for lost in nodes:
        heirs = Counter(each[1] for each in found.values() if each[0] == lost)
        others = [heirs[node] for node in nodes if node != lost]
        assert heirs[lost] == 0
        assert max(others) - min(others) <= 1


@given(st.integers(2, 16), st.permutations(["a", "b", "c", "d"]))
def test_all_nodes_compute_the_same(count: int, names: list[str]):
    """The order of the file does not matter, and every node has a priority of its own, from 50 to 250."""
    nodes = tuple(f"n{each}" for each in range(count))
    found = order({name: _router(nodes) for name in names})

    assert found == order({name: _router(nodes) for name in sorted(names)})
    for places in found.values():
        assert sorted(places) == sorted(nodes)
        priorities = [priority(places, node) for node in places]
        assert priorities[0] == FIRST
        assert priorities == sorted(set(priorities), reverse=True)
        assert priorities[-1] >= 50


def test_the_first_may_be_named():
    """The others take turns at the nodes that are left."""
    found = order({"a": _router(), "b": _router(first="lb-0"), "c": _router()})

    assert {name: places[0] for name, places in found.items()} == {"a": "lb-1", "b": "lb-0", "c": "lb-2"}


def test_a_sync_group_stays_together():
    """Its virtual IPs have one order, and count once."""
    found = order({"a": _router(sync_group="g"), "b": _router(sync_group="g"), "c": _router()})

    assert found["a"] == found["b"] == NODES
    assert found["c"][0] == "lb-1"


def test_what_is_not_spread_is_left_alone():
    """It keeps its priority."""
    plain = VirtualIpSection.model_validate(
        {"addresses": ["10.0.0.1/24"], "interface": "eth0", "router_id": 1}
    )

    assert order({"a": plain}) == {}


def test_a_host_name_may_have_a_domain():
    """The nodes are named by either."""
    assert own_name(NODES, "lb-1.example.com") == "lb-1"
    assert own_name(("lb-1.example.com", "lb-1"), "lb-1.example.com") == "lb-1.example.com"
    assert own_name(NODES, "laptop") is None


CONFIG = """
virtual_ips:
  api: {{ addresses: [10.0.0.1/24], interface: eth0, router_id: 1{api} }}
  ingress: {{ addresses: [10.0.0.2/24], interface: eth0, router_id: 2{ingress} }}
"""
SPREAD = ", spread: { nodes: [lb-0, lb-1, lb-2] }"


@pytest.mark.parametrize(
    ("node", "priorities"),
    [
        ("lb-0", [250, 150]), ("lb-1.example.com", [200, 250]), ("lb-2", [150, 200]), (None, [250, 250]),
    ],
)  # fmt: skip
def test_each_node_has_its_priorities(node: str | None, priorities: list[int]):
    """One file is for all nodes; where it is judged for none, each is the first."""
    loaded = load(CONFIG.format(api=SPREAD, ingress=SPREAD), source="f", number=1, node=node)

    assert loaded.errors == ()
    assert loaded.snapshot is not None
    assert [each.priority for each in loaded.snapshot.virtual_routers] == priorities
    assert loaded.snapshot.virtual_routers[0].listen == pytest.approx(3 + (256 - priorities[0]) / 256)


@pytest.mark.parametrize(
    ("api", "ingress", "node", "found"),
    [
        (
            SPREAD,
            SPREAD,
            "laptop",
            [(3, "virtual_ips.api.spread.nodes"), (4, "virtual_ips.ingress.spread.nodes")],
        ),
        (f"{SPREAD}, priority: 3", SPREAD, None, [(3, "virtual_ips.api.priority")]),
        (SPREAD[:-1] + ", first: lb-9 }", SPREAD, None, [(3, "virtual_ips.api.spread.first")]),
        (", spread: { nodes: [lb-0] }", SPREAD, None, [(3, "virtual_ips.api.spread.nodes")]),
        (", spread: { nodes: [lb-0, lb-0] }", SPREAD, None, [(3, "virtual_ips.api.spread.nodes")]),
        (f"{SPREAD}, sync_group: g", ", sync_group: g", None, [(4, "virtual_ips.ingress.spread")]),
        (", prefer: lb-0", SPREAD, None, [(3, "virtual_ips.api.prefer")]),
        (f"{SPREAD}, prefer: lb-0", SPREAD, None, [(3, "virtual_ips.api.prefer")]),
    ],
)
def test_what_cannot_be_meant_is_refused(api: str, ingress: str, node: str | None, found: list[object]):
    """Each error names line and key."""
    loaded = load(CONFIG.format(api=api, ingress=ingress), source="f", number=1, node=node)

    assert [(each.line, each.path) for each in loaded.errors] == found


FILE = f"nodes: {{{{ lb-0: {{{{}}}}, lb-1: {{{{}}}} }}}}{CONFIG}"
FIRST_1 = ", prefer: lb-1"


@pytest.mark.parametrize(("node", "priorities"), [("lb-0", [200, 250]), ("lb-1", [250, 200])])
def test_a_node_that_is_preferred_is_first(node: str, priorities: list[int]):
    """It has the same priorities as with `spread`, and the other virtual IPs take their turns beside it."""
    for first in (FIRST_1, ", spread: { first: lb-1 }"):
        text = FILE.format(api=first, ingress=", spread: {}")
        loaded = load(text, source="f", number=1, node=node)
        assert loaded.snapshot is not None, loaded.problems
        assert [each.priority for each in loaded.snapshot.virtual_routers] == priorities


@pytest.mark.parametrize(
    ("api", "ingress", "path"),
    [
        (", prefer: lb-9", "", "virtual_ips.api.prefer"),
        (f"{FIRST_1}, priority: 3", "", "virtual_ips.api.priority"),
        (f"{FIRST_1}, sync_group: g", ", prefer: lb-0, sync_group: g", "virtual_ips.api.prefer"),
        (f"{FIRST_1}, sync_group: g", ", sync_group: g", "virtual_ips.ingress.spread"),
    ],
)
def test_a_preference_that_cannot_be_meant_is_refused(api: str, ingress: str, path: str):
    """Another node than the file's, a priority beside it, and two that would have to move together."""
    loaded = load(FILE.format(api=api, ingress=ingress), source="f", number=1, node="lb-0")
    assert [each.path for each in loaded.errors] == [path]
