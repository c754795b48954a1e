"""Virtual router ids agree with OpenShift's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.router_ids import ClusterNameError, RouterIds, derived, fletcher8, router_ids

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("cluster", "api", "ingress"),
    [
        ("cnf10", 147, 2),
        ("cnf11", 228, 147),
        ("oc2-yw674", 1, 223),
        ("test", 13, 28),
        ("mycluster", 74, 137),
        ("prod", 2, 33),
        ("é", 164, 83),
    ],
)
def test_known_clusters(cluster: str, api: int, ingress: int):
    """Every published and worked-out pair is reproduced."""
    assert RouterIds(api=api, ingress=ingress) == router_ids(cluster)


def test_known_collision():
    """Two names that are known to collide on both ids do."""
    assert router_ids("rna1") == router_ids("my-cluster")


def test_empty_name_is_refused():
    """An empty name is runtimecfg's error, in its words."""
    with pytest.raises(ClusterNameError, match="Cluster name can't be empty"):
        router_ids("")


@given(st.text(min_size=1))
def test_ids_are_in_range(cluster: str):
    """Any name gives two ids that a router may have, and never the same one twice."""
    ids = router_ids(cluster.encode(errors="replace").decode())
    assert 1 <= ids.api <= 239
    assert 1 <= ids.ingress <= 240
    assert ids.api != ids.ingress


def test_bytes_wrap_as_in_go():
    """A byte that carries the sum past 255 wraps before it is reduced."""
    assert fletcher8("\udcff") == (0xFF % 15) << 4 | 0xFF % 15
    # 14 + 255 is 13 in a Go uint8, not 269.
    assert fletcher8("\x0e\udcff") == ((14 + 13) % 15) << 4 | 13


@pytest.mark.parametrize(
    ("name", "cluster", "found"),
    [
        ("api", "cnf10", 147),
        ("ingress", "cnf10", 2),
        ("api-v6", "cnf10", 147),
        ("apiary", "cnf10", None),
        ("other", "cnf10", None),
        ("api", None, None),
        ("api", "", None),
    ],
)
def test_the_name_of_a_virtual_ip_tells_its_id(name: str, cluster: str | None, found: int | None):
    """`api` and `ingress`, and names that go on with a hyphen, have the ids of the cluster."""
    assert derived(name, cluster=cluster) == found
