"""A Node's address is chosen as OpenShift's own load balancer chooses it, for both families."""

from ipaddress import ip_interface

import pytest
from support.values.snapshots import snapshot, virtual_router

from appliance.core.discovery.finding import AddressChoice, address_choice, usable_address
from appliance.model.snapshot.discovery import Kubernetes

pytestmark = pytest.mark.pure

DUAL = [("InternalIP", "10.0.0.1"), ("InternalIP", "2001:db8::1"), ("ExternalIP", "192.0.2.9")]


def choice(family: int | None = None, *virtual: str) -> AddressChoice:
    """Return what decides."""
    return AddressChoice(family=family, virtual=tuple(map(ip_interface, virtual)))


def test_only_internal_addresses_count():
    """External addresses and names are not for a load balancer beside the cluster."""
    assert choice().choose([("Hostname", "a"), ("ExternalIP", "192.0.2.9")]) is None
    assert choice().choose(DUAL) == "10.0.0.1"


def test_the_family_is_the_wanted_one_where_there_is_such_an_address():
    """A Node of the other family alone is used by that."""
    assert choice(6).choose(DUAL) == "2001:db8::1"
    assert choice(4).choose(list(reversed(DUAL))) == "10.0.0.1"
    assert choice(6).choose(DUAL[:1]) == "10.0.0.1"


def test_the_last_address_beside_a_virtual_ip_wins():
    """As runtimecfg has it for a virtual IP in a local network; elsewhere the first one counts."""
    several = [("InternalIP", "172.16.0.1"), ("InternalIP", "10.0.0.1"), ("InternalIP", "10.0.0.2")]
    assert choice(4).choose(several) == "172.16.0.1"
    assert choice(4, "10.0.0.200/24").choose(several) == "10.0.0.2"
    assert choice(4, "192.0.2.200/32").choose(several) == "172.16.0.1"


def test_a_virtual_ip_is_no_address_of_a_node():
    """Kubelets report every address of their machine, the virtual ones that it holds among them."""
    held = [("InternalIP", "10.0.0.200"), ("InternalIP", "10.0.0.1")]
    assert choice(4, "10.0.0.200/24").choose(held) == "10.0.0.1"
    assert choice(4, "10.0.0.200/24").choose(held[:1]) is None


@pytest.mark.parametrize(
    "text", ["", "a", "0.0.0.0", "224.0.0.1", "fe80::1", "fe80::1%eth0", "2001:db8::1%1", "::"]
)
def test_what_cannot_be_connected_to_is_left_out(text: str):
    """Names, scopes and addresses of many or of one link."""
    assert usable_address(text) is None
    assert choice().choose([("InternalIP", text)]) is None


def test_a_mapped_address_is_the_one_it_maps():
    """As everywhere in the configuration."""
    assert usable_address("::ffff:10.0.0.1") == "10.0.0.1"


def test_the_configuration_decides():
    """The family that it names, else that of its first virtual IP, else each Node's first."""
    six = virtual_router(addresses=("2001:db8::200/64",))
    access = Kubernetes(kubeconfig=None, token_file=None, ca=None, api=(), server_name=None, family=4)
    assert address_choice(snapshot()).family is None
    assert address_choice(snapshot(virtual_routers=[six])).family == 6
    assert address_choice(snapshot(virtual_routers=[six], kubernetes=access)).family == 4
    assert address_choice(snapshot(virtual_routers=[six])).virtual == (ip_interface("2001:db8::200/64"),)
