"""The digest of what all nodes have in common of their configuration."""

import pytest

from appliance.model.loading.loading import Loaded, load

pytestmark = pytest.mark.pure

NODES = "nodes: { lb-0: { address: 10.0.0.2 }, lb-1: { address: 10.0.0.3 } }\n"
POOLS = 'pools: { m: { servers: { a: { address: "10.0.0.5:6443" } } } }\n'
API = 'api: { frontends: { f: { bind: ["10.0.0.2:6443"], pool: m } } }\n'
LINGER = "linger: { key: " + "ab" * 32 + " }\n"
VIP = """
virtual_ips:
  api:
    addresses: [10.0.0.1/24]
    interface: eth0
    router_id: 1
    priority: {priority}
"""
BY_NODE = VIP.replace("{priority}", "{ lb-0: 150, lb-1: 100 }")


def loaded(text: str, *, node: str = "lb-0") -> Loaded:
    """Return what a text means at a node; fails for a bad one."""
    found = load(text, source="f", number=1, node=node)
    assert found.snapshot is not None, found.problems
    return found


def common(text: str, *, node: str = "lb-0") -> str:
    """Return its digest."""
    return loaded(text, node=node).common


def own(priority: int, *, pools: str = POOLS, bind: str = "10.0.0.2", key: str = LINGER) -> str:
    """Return a file of one node alone."""
    return API.replace("10.0.0.2", bind) + pools + key + VIP.replace("{priority}", str(priority))


def test_one_file_has_one_digest():
    """The values by node are in it as they are written, with spaces, comments and order of no importance."""
    whole = NODES + POOLS + LINGER + BY_NODE
    assert len(bytes.fromhex(common(whole))) == 16
    assert common(whole, node="lb-0") == common(whole, node="lb-1")
    assert common(BY_NODE + LINGER + POOLS + "# by hand\n" + NODES) == common(whole)


@pytest.mark.parametrize(("before", "after"), [("150", "151"), ("10.0.0.5", "10.0.0.6"), ("eth0", "eth1")])
def test_any_value_of_one_file_counts(before: str, after: str):
    """All nodes have the same file."""
    whole = NODES + POOLS + LINGER + BY_NODE
    assert common(whole) != common(whole.replace(before, after))


def test_what_nodes_with_files_of_their_own_have_in_common():
    """Their priorities and addresses differ, their servers do not."""
    assert common(own(150)) == common(own(100, bind="10.0.0.3"))
    assert common(own(150)) != common(own(150, pools=POOLS.replace("10.0.0.5", "10.0.0.6")))


def test_a_secret_is_not_in_it():
    """Nodes tell the digest: nobody can try passwords by it. Keys that rotate are no drift either."""
    assert common(own(150)) == common(own(150, key=LINGER.replace("ab", "cd")))
    given = NODES + POOLS + LINGER + BY_NODE
    assert common(given) == common(given.replace("ab" * 32, "cd" * 32))


def test_the_name_for_other_nodes():
    """It is that of `nodes`, whose host name may have a domain; without `nodes` the host's."""
    whole = NODES + POOLS + LINGER + BY_NODE
    assert loaded(whole, node="lb-1.example.com").node == "lb-1"
    assert loaded(own(150), node="host.example.com").node == "host.example.com"


def test_without_linger_nobody_is_told():
    """There are no reports that could carry it."""
    found = loaded(POOLS)
    assert (found.common, found.node) == ("", "")
