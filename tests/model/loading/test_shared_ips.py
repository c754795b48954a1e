"""What `shared_ips` and `bgp` of the file are in the snapshot, at each node."""

import pytest

from appliance.model.loading.loading import load
from appliance.model.snapshot.shared_ip import Bfd, Engine
from appliance.model.snapshot.snapshot import Snapshot, without_secrets

pytestmark = pytest.mark.pure

FILE = """
nodes: {{ lb-0: {{ address: 10.0.0.2, ipv6: "2001:db8::2" }}, lb-1: {{ address: 10.0.0.3 }} }}
linger: {{ key: file:/etc/appliance/linger.key{peers} }}
shared_ips:
  ingress:
    addresses: [198.51.100.10/32]
    track: {{ serving: {{ exists: /run/serving }} }}
bgp:
  asn: 64512
  neighbors:
    tor-a: {{ address: 10.0.0.1, asn: 64600, password: s3cret, bfd: {{}} }}
    tor-b: {{ address: 10.1.0.1, asn: 64600, password: "file:/etc/bgp.pass", nodes: [lb-1] }}
"""


def snapshot(node: str, peers: str = "") -> Snapshot:
    """Return what the file means at a node."""
    loaded = load(FILE.format(peers=peers), source="appliance.yaml", number=1, node=node)
    assert loaded.snapshot is not None, loaded.problems
    return loaded.snapshot


def test_neighbours_are_those_of_the_node():
    """A neighbour that names nodes belongs to no other; passwords are here, or in the file they name."""
    one, other = (snapshot(name).bgp for name in ("lb-0", "lb-1"))
    assert one is not None
    assert other is not None
    assert [each.name for each in one.neighbors] == ["tor-a"]
    assert (one.neighbors[0].password, one.neighbors[0].password_file) == ("s3cret", None)
    assert one.neighbors[0].bfd == Bfd(interval=0.1, multiplier=3)
    assert [each.name for each in other.neighbors] == ["tor-a", "tor-b"]
    assert (other.neighbors[1].password, other.neighbors[1].password_file) == (None, "/etc/bgp.pass")


def test_the_other_nodes_are_the_peers_of_linger():
    """Their addresses of both families, unless the file names peers."""
    given = {name: snapshot(name).linger for name in ("lb-0", "lb-1")}
    assert {name: each.peers for name, each in given.items() if each} == {
        "lb-0": ("10.0.0.3",),
        "lb-1": ("10.0.0.2", "2001:db8::2"),
    }
    named = snapshot("lb-0", ", peers: [10.0.0.9]").linger
    assert named is not None
    assert named.peers == ("10.0.0.9",)


def test_readers_see_no_password():
    """The snapshot for the group that may read has none."""
    shown = without_secrets(snapshot("lb-0")).bgp
    assert shown is not None
    assert [each.password for each in shown.neighbors] == [None]


def test_literal_addresses():
    """The addresses of all shared IPs without their prefix lengths."""
    assert snapshot("lb-0").shared_addresses == ("198.51.100.10",)


def test_too_many_addresses():
    """A limit that BIRD's filters and the kernel's rules keep."""
    listed = ", ".join(f"198.51.{high}.{low}/32" for high in (100, 101) for low in range(1, 130))
    file = f"shared_ips: {{ many: {{ addresses: [{listed}] }} }}\nbgp: {{ asn: 64512, engine: table }}"
    loaded = load(file, source="appliance.yaml", number=1)
    assert [each.message for each in loaded.errors] == ["258 addresses: 256 are supported"]


def test_without_bgp():
    """Virtual IPs that follow the shared ones are the next hops; tables are written that nobody reads."""
    follows = "track: { serves: { program: announce } }"
    hop = f"{{ addresses: [10.0.0.201/24], interface: eth0, router_id: 7, {follows} }}"
    file = f"shared_ips: {{ one: {{ addresses: [198.51.100.10/32] }} }}\nvirtual_ips: {{ hop: {hop} }}\n"
    loaded = load(file, source="appliance.yaml", number=1)
    assert [each.message.partition(",")[0] for each in loaded.problems] == ["without `linger`"]
    assert loaded.snapshot is not None
    assert loaded.snapshot.bgp is not None
    assert (loaded.snapshot.bgp.engine, loaded.snapshot.bgp.neighbors) == (Engine.TABLE, ())
