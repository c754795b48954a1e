"""What objects of the cluster amount to."""

import pytest

from appliance.core.discovery import finding
from appliance.core.discovery.finding import AddressChoice
from appliance.model.snapshot.discovery import ApiAddress
from appliance.model.snapshot.found_servers import FoundServer
from appliance.wire.kubernetes.objects import (
    ConfigMap,
    Endpoint,
    EndpointConditions,
    EndpointPort,
    EndpointSlice,
    HostNetwork,
    IngressController,
    IngressControllerStatus,
    Metadata,
    Node,
    NodeAddress,
    NodeStatus,
    PublishingStrategy,
)

pytestmark = pytest.mark.pure

CHOICE = AddressChoice(family=None, virtual=())


def node(name: str, *addresses: str) -> Node:
    """Return a Node."""
    found = tuple(NodeAddress(type="InternalIP", address=each) for each in addresses)
    return Node(metadata=Metadata(name=name), status=NodeStatus(addresses=found))


def slice_of(*endpoints: Endpoint, http: int | None = 80, https: int | None = 443) -> EndpointSlice:
    """Return an EndpointSlice."""
    ports = (EndpointPort(name="http", port=http), EndpointPort(name="https", port=https))
    return EndpointSlice(metadata=Metadata(name="s"), endpoints=endpoints, ports=ports)


def endpoint(address: str, where: str | None = None, *, ready: bool | None = True) -> Endpoint:
    """Return an endpoint."""
    return Endpoint(addresses=(address,), conditions=EndpointConditions(ready=ready), node_name=where)


def controller(kind: str = "HostNetwork", **network: object) -> IngressController:
    """Return an IngressController."""
    strategy = PublishingStrategy(type=kind, host_network=HostNetwork(**network))
    status = IngressControllerStatus(endpoint_publishing_strategy=strategy)
    return IngressController(metadata=Metadata(name="default"), status=status)


def test_nodes_in_the_order_of_their_names():
    """One without an address is left out; conditions are not looked at, there are none."""
    bare = Node(metadata=Metadata(name="c"))
    assert finding.nodes([node("b", "10.0.0.2"), bare, node("a", "10.0.0.1"), node("d")], CHOICE) == (
        FoundServer(name="a", host="10.0.0.1"),
        FoundServer(name="b", host="10.0.0.2"),
    )


def test_routers_that_are_ready():
    """A condition that is not said is true; one without an address or a Node's name is no trouble."""
    found = slice_of(
        endpoint("10.0.0.2", "b"),
        endpoint("10.0.0.1", "a", ready=None),
        endpoint("10.0.0.3", "c", ready=False),
        Endpoint(addresses=("10.0.0.4",)),
        Endpoint(),
        endpoint("what", "d"),
    )
    assert [(each.name, each.host) for each in finding.routers([found], [], CHOICE)] == [
        ("10.0.0.4", "10.0.0.4"),
        ("a", "10.0.0.1"),
        ("b", "10.0.0.2"),
    ]
    assert finding.routers([EndpointSlice(metadata=Metadata(name="s"))], [], CHOICE) == ()


def test_a_node_of_both_families_is_one_server():
    """Each family has a slice of its own."""
    slices = [slice_of(endpoint("2001:db8::1", "a")), slice_of(endpoint("10.0.0.1", "a"))]
    assert [each.host for each in finding.routers(slices, [], AddressChoice(family=6, virtual=()))] == [
        "2001:db8::1"
    ]
    assert [each.host for each in finding.routers(slices, [], AddressChoice(family=4, virtual=()))] == [
        "10.0.0.1"
    ]


def test_ports_of_routers():
    """The IngressController's for its Nodes, else the endpoints', else the usual ones."""
    found = endpoint("10.0.0.1", "a")

    def ports(slices: EndpointSlice, *controllers: IngressController) -> tuple[int, int]:
        (server,) = finding.routers([slices], controllers, CHOICE)
        return server.http, server.https

    assert ports(slice_of(found, http=8080, https=8443)) == (8080, 8443)
    assert ports(slice_of(found, http=None, https=None)) == (80, 443)
    assert ports(slice_of(found), controller(http_port=81, https_port=444)) == (81, 444)
    assert ports(slice_of(found), controller("NodePortService", http_port=81)) == (80, 443)
    bare = IngressController(metadata=Metadata(name="default"))
    assert ports(slice_of(found), bare, controller()) == (80, 443)


def test_a_node_whose_only_address_is_virtual_is_left_out():
    """A router that is reported at a virtual IP is on the Node that holds it."""
    virtual = AddressChoice(family=4, virtual=())
    assert len(finding.routers([slice_of(endpoint("10.0.0.200", "a"))], [], virtual)) == 1
    from ipaddress import ip_interface  # noqa: PLC0415  # for this line only

    held = AddressChoice(family=4, virtual=(ip_interface("10.0.0.200/24"),))
    assert finding.routers([slice_of(endpoint("10.0.0.200", "a"))], [], held) == ()


def test_the_proxy_header():
    """Only a HostNetwork that says PROXY wants it; where nothing is known, nothing is said."""
    assert finding.expects_proxy([controller(protocol="PROXY")]) is True
    assert finding.expects_proxy([controller(protocol="TCP")]) is False
    assert finding.expects_proxy([controller("Private", protocol="PROXY")]) is False
    assert finding.expects_proxy([]) is None
    assert finding.expects_proxy([IngressController(metadata=Metadata(name="a"))]) is None


def test_api_servers():
    """At the port that they say, else at the usual one."""
    several = EndpointSlice(
        metadata=Metadata(name="kubernetes"),
        endpoints=(endpoint("10.0.0.1"), endpoint("10.0.0.2")),
        ports=(EndpointPort(name="https", port=7443),),
    )
    assert finding.api_servers([several]) == (
        ApiAddress(host="10.0.0.1", port=7443),
        ApiAddress(host="10.0.0.2", port=7443),
    )
    bare = EndpointSlice(metadata=Metadata(name="kubernetes"), endpoints=(endpoint("10.0.0.1"),))
    assert finding.api_servers([bare]) == (ApiAddress(host="10.0.0.1", port=6443),)


def test_the_end_of_the_bootstrap():
    """The installer's own condition."""
    assert finding.is_installed([ConfigMap(metadata=Metadata(name="bootstrap"), data={"status": "complete"})])
    assert not finding.is_installed([ConfigMap(metadata=Metadata(name="bootstrap"))])
    assert not finding.is_installed([])
