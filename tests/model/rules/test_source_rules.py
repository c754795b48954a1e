"""Ports of connections from virtual IPs: every node has its own."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.loading.loading import load
from appliance.model.rules.source_rules import ports_of
from appliance.model.snapshot.pools import SOURCE_PORTS, Pool, SourceAddress

pytestmark = pytest.mark.pure

_FILE = """
nodes: { lb-0: { address: 10.0.0.2 }, lb-1: { address: 10.0.0.3 } }
virtual_ips: { api: { addresses: [10.0.0.200/24], interface: eth0, router_id: 7 } }
api: { frontends: { a: { bind: ["10.0.0.200:1001"], pool: p } } }
pools: { p: { %s, servers: { s: { address: 10.0.0.1:1 } } } }
"""


def _pool(pool: str, node: str, text: str = _FILE) -> Pool:
    loaded = load(text % pool, source="FILE", number=1, node=node)
    assert loaded.problems == ()
    assert loaded.snapshot is not None
    return loaded.snapshot.pools[0]


@given(st.integers(1, 64).map(lambda count: [f"n{each}" for each in range(count)]))
def test_no_two_nodes_have_a_port_in_common(nodes: list[str]):
    """The parts are equal, within the ports of all, and the same whatever the order of the nodes."""
    parts = sorted(ports_of(each, nodes) for each in nodes)

    assert parts == sorted(ports_of(each, nodes[::-1]) for each in nodes)
    assert parts[0][0] == SOURCE_PORTS[0]
    assert parts[-1][1] <= SOURCE_PORTS[1]
    assert len({high - low for low, high in parts}) == 1
    assert all(high < low for (_, high), (low, _) in pairwise(parts))


def test_a_node_has_its_part():
    """`nodes` gives each node the ports of its place, by host name with or without domain."""
    first, second = (_pool("source: virtual-ip", node) for node in ("lb-0", "lb-1.example.com"))

    assert first.source is SourceAddress.VIRTUAL_IP
    assert (first.source_ports, second.source_ports) == ((16384, 38691), (38692, 60999))


def test_the_file_may_name_the_ports():
    """`source_ports` wins over the part, and may differ by node, as other values may."""
    text = "source: virtual-ip, source_ports: { lb-0: 2000-2999, lb-1: 3000-3999 }"

    assert [_pool(text, each).source_ports for each in ("lb-0", "lb-1")] == [(2000, 2999), (3000, 3999)]


def test_by_default_servers_see_the_node():
    """Without the key nothing changes, and no node has ports of its own."""
    found = _pool("retries: 1", "lb-1")

    assert (found.source, found.source_ports) == (SourceAddress.NODE, SOURCE_PORTS)


@pytest.mark.parametrize(
    "ports",
    [
        "source_ports: 20000-29999",
        "source_ports: { lb-0: 2000-2999, lb-1: 2999-3999 }",
        "source_ports: { lb-0: 50000-50999 }",
    ],
    ids=["one for all", "too many", "the other one's part"],
)
def test_ports_of_two_nodes_are_told(ports: str):
    """Every node tells it, at the key, whatever it is for."""
    for node in ("lb-0", "lb-1", None):
        loaded = load(_FILE % f"source: virtual-ip, {ports}", source="FILE", number=1, node=node)
        assert [each.path for each in loaded.problems] == ["pools.p.source_ports"]
        assert "`lb-0` and `lb-1` have ports in common" in loaded.problems[0].message


def test_a_node_that_connects_as_itself_has_no_ports_in_common():
    """`source` may differ by node, too."""
    assert _pool("source: { lb-0: virtual-ip }", "lb-1").source is SourceAddress.NODE


def test_sessions_that_move_connect_from_shared_addresses_too():
    """Then `source` has an effect without `virtual_ips`."""
    text = (Path(__file__).parents[1] / "corpus" / "source-shared.yaml").read_text()
    moving = text.replace("linger: {", "linger: { sessions: { certificate: /etc/nodes.pem },")

    assert [each.path for each in load(text, source="FILE", number=1).problems] == ["pools.shared.source"]
    assert load(moving, source="FILE", number=1).problems == ()


def test_an_error_at_one_node_hides_no_other():
    """Ports of a node whose configuration is wrong are not compared."""
    text = "source: virtual-ip, source_ports: { lb-0: 1-2, lb-1: 2000-2999 }"
    loaded = load(_FILE % text, source="FILE", number=1, node="lb-1")

    assert [each.path for each in loaded.errors] == [each.path for each in loaded.problems]
    assert [each.path for each in loaded.problems] == ["pools.p.source_ports"]
