"""Several networks: each with its addresses and ways, and none of them is guessed."""

import pytest

from appliance.model.guest.machine_settings import GuestMachine, machine, on_adapters
from appliance.model.guest.networks import Role, Route
from appliance.model.guest.reader import PropertyReader

pytestmark = pytest.mark.pure

FOUR = {
    "address": "10.0.0.11/24",
    "servers_address": "10.0.1.11 255.255.255.0",
    "management_address": "10.0.2.11/24",
    "vrrp_address": "10.0.3.11/24",
    "gateway": "10.0.0.1",
    "ssh_key": "",
}


def read(said: dict[str, str]) -> tuple[GuestMachine, list[str]]:
    """Return the machine and the problems."""
    reader = PropertyReader({key: value for key, value in said.items() if value})
    return machine(reader), [str(each) for each in reader.problems]


def test_each_network_has_its_own():
    """Resolvers and routes belong to the network by which they are reached, by a route if need be."""
    found, problems = read(
        {
            **FOUR,
            "dns": "10.0.2.5, 10.20.0.5, 8.8.8.8",
            "routes": "10.20.0.0/16 via 10.0.1.1, 10.30.0.0/16 VIA 10.0.2.1",
        }
    )
    assert problems == []
    assert [each.role for each in found.networks] == list(Role)
    assert found.of(Role.SERVERS, Role.VRRP) == ("10.0.1.11/24", "10.0.3.11/24")
    assert [each.gateways for each in found.networks] == [("10.0.0.1",), (), (), ()]
    assert [each.resolvers for each in found.networks] == [("8.8.8.8",), ("10.20.0.5",), ("10.0.2.5",), ()]
    routes = (Route(to="10.20.0.0/16", via="10.0.1.1"),), (Route(to="10.30.0.0/16", via="10.0.2.1"),)
    assert [each.routes for each in found.networks] == [(), *routes, ()]


def test_the_default_route_may_be_in_any_network():
    """Clients of the same segment need none."""
    found, problems = read({**FOUR, "gateway": "10.0.2.1"})
    assert problems == []
    assert [each.gateways for each in found.networks] == [(), (), ("10.0.2.1",), ()]


def test_a_further_network_may_have_dhcp():
    """But that of VRRP, whose address the others have to know."""
    found, problems = read({**FOUR, "management_address": "DHCP", "vrrp_address": "dhcp"})
    assert found.network(Role.MANAGEMENT) is not None
    assert found.of(Role.MANAGEMENT) == ()
    assert found.network(Role.VRRP) is None
    assert [each.partition(":")[0] for each in problems] == ["Address, VRRP (vrrp_address)"]
    found, problems = read({"management_address": "10.0.2.11/24"})
    assert [each.addresses for each in found.networks] == [(), ("10.0.2.11/24",)]
    assert problems == []


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"servers_address": "10.0.0.11/24"}, "`10.0.0.11` twice, as address too"),
        ({"servers_address": "10.0.0.12/24"}, "10.0.0.0/24 is the network of address too"),
        ({"routes": "10.20.0.0/16"}, "has no router"),
        ({"routes": "10.20.0.1/16 via 10.0.1.1"}, "10.20.0.0/16"),
        ({"routes": "10.20.0.0/16 via 10.9.9.9"}, "is not in the network"),
        ({"routes": "2001:db8:9::/48 via 10.0.1.1"}, "not of one version"),
        ({"routes": "10.20.0.0/16 via router"}, "must be an address"),
    ],
)
def test_what_is_wrong_is_named(said: dict[str, str], message: str):
    """The other networks stay."""
    found, problems = read({**FOUR, **said})
    assert message in "".join(problems)
    assert len(problems) == 1
    assert found.of(Role.CLIENTS) == ("10.0.0.11/24",)


def test_a_network_without_an_adapter_is_left_out():
    """The first stays: it takes what there is."""
    reader = PropertyReader(FOUR)
    found = on_adapters(reader, machine(reader), 2)
    assert [each.role for each in found.networks] == [Role.CLIENTS, Role.SERVERS]
    assert [each.key for each in reader.problems] == ["management_address", "vrrp_address"]
    assert "needs 3 network" in reader.problems[0].message
    assert [each.role for each in on_adapters(reader, machine(PropertyReader({})), 0).networks] == [
        Role.CLIENTS
    ]
