"""Properties become a configuration that the loader takes, or problems that say everything at once."""

import base64
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values.keys import ED25519

from appliance.model.guest.appliance_settings import GuestSettings, guest_settings, property_reader
from appliance.model.guest.machine_settings import machine
from appliance.model.guest.networks import Role
from appliance.model.guest.properties import BY_KEY
from appliance.model.loading.loading import load
from appliance.model.snapshot.snapshot import Snapshot

pytestmark = pytest.mark.pure

MACHINE = {"address": "10.0.0.11/24", "gateway": "10.0.0.1", "ssh_key": ED25519}
CLUSTER = {
    "cluster_name": "ocp4",
    "cluster_domain": "example.com",
    "masters": "10.0.0.34, 10.0.0.99",
    "routers": "infra-0.example.com",
    "api_vip": "10.0.0.200",
    "ingress_vip": "10.0.0.201",
    "vrrp_peers": "10.0.0.11, 10.0.0.12",
    "vrrp_priority": "110",
}
ALL = {**MACHINE, **CLUSTER}


def settings(written: dict[str, str]) -> GuestSettings:
    """Return what they amount to on a machine with one interface."""
    return on_interface(written, "ens192")


def on_interface(written: dict[str, str], interface: str | None) -> GuestSettings:
    """Return what they amount to on a machine with this interface, or with none."""
    reader = property_reader(written)
    known = {Role.CLIENTS: interface} if interface is not None else {}
    return guest_settings(reader, machine(reader), interfaces=tuple(known.values()), of_networks=known)


def snapshot(found: GuestSettings) -> Snapshot:
    """Return what the loader makes of the configuration, of which nothing may be wrong."""
    assert found.problems == ()
    assert found.yaml is not None
    loaded = load(found.yaml, source="x", number=1)
    assert loaded.problems == ()
    assert loaded.snapshot is not None
    return loaded.snapshot


def told(written: dict[str, str]) -> list[str]:
    """Return the problems, where nothing may come of the cluster section."""
    found = settings(written)
    assert found.yaml is None
    return [str(each) for each in found.problems]


def test_whole_form_gives_a_whole_configuration():
    """API, machine configuration for our own network, endpoints, ingress, both virtual IPs."""
    found = snapshot(settings(ALL))
    frontends = {each.name: each for group in found.groups for each in group.frontends}
    assert list(frontends) == ["kube-api", "machine-config", "ready", "monitor", "http", "https"]
    assert [str(each.port) for each in frontends["kube-api"].binds] == ["9445", "6443"]
    assert frontends["machine-config"].allow == ("10.0.0.0/24",)
    assert found.cluster == "ocp4"
    api, ingress = found.virtual_routers
    assert (api.addresses, api.interface, api.priority) == (("10.0.0.200/24",), "ens192", 110)
    assert (api.router_id, ingress.router_id) != (0, 0)
    assert api.peers == ("10.0.0.12",)  # all machines may be given the same list
    assert [each.target for each in (*api.track, *ingress.track)] == ["proxy-api", "proxy-ingress"]


def test_file_says_where_it_comes_from():
    """Whoever opens it learns how to change it."""
    assert (settings(ALL).yaml or b"").startswith(b"# Made from the properties of this virtual machine")


def test_dhcp_leaves_machine_config_out():
    """Nobody written who may have its secrets; that is noted, and shown in the file."""
    found = settings(CLUSTER)
    assert not any(
        each.name == "machine-config" for group in snapshot(found).groups for each in group.frontends
    )
    assert any("22623" in each for each in found.notes)
    assert b"# machine-config:" in (found.yaml or b"")


def test_virtual_ips_alone_are_a_configuration():
    """Other machines may do the balancing; nothing of ours is tracked then."""
    written = {**MACHINE, "cluster_name": "ocp4", "api_vip": "10.0.0.200"}
    found = snapshot(settings(written))
    assert found.groups == ()
    assert [(each.name, each.track, each.peers) for each in found.virtual_routers] == [("api", (), ())]


def test_each_half_stands_alone():
    """Masters without routers, and the other way round."""
    api = snapshot(settings({**MACHINE, "cluster_name": "a", "masters": "10.0.0.34"}))
    ingress = snapshot(settings({**MACHINE, "cluster_name": "a", "routers": "10.0.0.51"}))
    assert [[group.name for group in each.groups] for each in (api, ingress)] == [["api"], ["ingress"]]


@pytest.mark.parametrize(
    ("written", "tracked"),
    [
        ({"api_vip": "10.0.0.200"}, {"api": ["proxy-api", "proxy-ingress"]}),
        ({"ingress_vip": "10.0.0.200"}, {"ingress": ["proxy-api", "proxy-ingress"]}),
        ({"api_vip": "10.0.0.200", "masters": ""}, {"api": ["proxy-ingress"]}),
        (
            {"api_vip": "10.0.0.200", "ingress_vip": "10.0.0.201"},
            {"api": ["proxy-api"], "ingress": ["proxy-ingress"]},
        ),
        (
            {"api_vip": "10.0.0.200", "ingress_vip": "10.0.0.201", "masters": ""},
            {"api": [], "ingress": ["proxy-ingress"]},
        ),
    ],
)
def test_a_virtual_ip_goes_away_with_what_it_serves(written: dict[str, str], tracked: dict[str, list[str]]):
    """A lone one serves both, whichever field it stands in."""
    found = snapshot(settings({**ALL, "api_vip": "", "ingress_vip": "", **written}))
    assert {each.name: [track.target for track in each.track] for each in found.virtual_routers} == tracked


def test_both_families_move_together():
    """A virtual IP of each family, with the peers of its family, in one sync group."""
    written = {
        **ALL,
        "address": "10.0.0.11/24, 2001:db8::11/64",
        "api_vip": "10.0.0.200, 2001:db8::200",
        "vrrp_peers": "10.0.0.12, 2001:db8::12",
    }
    four, six, ingress = snapshot(settings(written)).virtual_routers
    assert (four.name, four.peers, four.sync_group) == ("api-v4", ("10.0.0.12",), "api")
    assert (six.name, six.peers, six.sync_group) == ("api-v6", ("2001:db8::12",), "api")
    assert six.addresses == ("2001:db8::200/64",)
    assert ingress.sync_group is None


@pytest.mark.parametrize(
    ("vip", "address", "told"),
    [
        ("10.0.0.200", "10.0.0.200/24", False),
        ("10.0.0.200/23", "10.0.0.200/23", False),
        ("10.9.0.200", "10.9.0.200/32", True),
        ("10.9.0.200/32", "10.9.0.200/32", False),
    ],
)
def test_prefix_length_is_that_of_the_own_network(vip: str, address: str, told: bool):  # noqa: FBT001
    """What lies in no own network is an address alone, and a problem unless its length is written."""
    found = settings({**ALL, "api_vip": vip})
    assert [each.key for each in found.problems] == (["api_vip"] if told else [])
    assert snapshot(replace(found, problems=())).virtual_routers[0].addresses == (address,)


@pytest.mark.parametrize("name", ["on", "1e3", "null"])
def test_texts_that_yaml_would_take_for_others_stay_texts(name: str):
    """A cluster may be called `on`."""
    assert snapshot(settings({**ALL, "cluster_name": name})).cluster == name


_VIPS = ("api", "ingress")
_IDS = "Cluster name (cluster_name): the virtual IPs are left out: their router ids come from it"


def parts_of(found: GuestSettings) -> tuple[dict[str, list[str]], dict[str, tuple[int, tuple[str, ...]]]]:
    """Return the servers of each pool, and priority and peers of each virtual IP."""
    assert found.yaml is not None
    loaded = load(found.yaml, source="x", number=1)
    assert loaded.problems == ()
    assert loaded.snapshot is not None
    pools = {each.name: [server.name for server in each.servers] for each in loaded.snapshot.pools}
    return pools, {each.name: (each.priority, each.peers) for each in loaded.snapshot.virtual_routers}


_POOLS, _ROUTERS = parts_of(settings(ALL))
_API_POOLS = ("masters", "machine-config")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cluster_domain": "-"}, "Base domain (cluster_domain): `-` is not"),
        ({"masters": "10.0.0.34, 10.0.0.99, 10.0.0.300"}, "Masters (masters): `10.0.0.300`"),
        ({"masters": "10.0.0.34, 10.0.0.99, 10.0.0.11"}, "Masters (masters): `10.0.0.11` is this machine's"),
        (
            {"masters": "10.0.0.34, 10.0.0.99, 10.0.0.200"},
            "Masters (masters): `10.0.0.200` is the API virtual",
        ),
        (
            {"masters": "10.0.0.34, 10.0.0.99, 10.0.0.90:6443"},
            "Masters (masters): `10.0.0.90:6443` has a port: `10.0.0.90` alone; it is left out",
        ),
        ({"routers": "infra-0.example.com, b:c/d"}, "Routers (routers): "),
        ({"vrrp_peers": "10.0.0.12, 10.0.0.1z"}, "VRRP peers (vrrp_peers): must be an address"),
    ],
)
def test_one_wrong_part_costs_only_itself(change: dict[str, str], message: str):
    """The others of a list are used, and all else is as it would be."""
    found = settings({**ALL, **change})
    assert str(found.problems[0]).startswith(message)
    assert all(str(each).endswith("; it is left out") for each in found.problems)
    assert {each.key for each in found.problems} == set(change)
    assert parts_of(found) == (_POOLS, _ROUTERS)


@pytest.mark.parametrize("priority", ["0", "300", "high"])
def test_a_wrong_priority_is_that_of_the_form(priority: str):
    """The virtual IPs are there all the same."""
    found = settings({**ALL, "vrrp_priority": priority})
    (problem,) = map(str, found.problems)
    assert (
        problem
        == f"VRRP priority (vrrp_priority): must be a number from 1 to 254, not `{priority}`; 100 is used"
    )
    assert parts_of(found) == (_POOLS, {name: (100, peers) for name, (_, peers) in _ROUTERS.items()})


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        ({"cluster_name": ""}, ["Cluster name (cluster_name): is missing", _IDS]),
        ({"cluster_name": "ocp 4"}, ["Cluster name (cluster_name): `ocp 4` is not a DNS name", _IDS]),
        (
            {"address": "10.0.0.11"},
            ["Address (address): `10.0.0.11` has no", "Address (address): the virtual IPs"],
        ),
        (
            {"vrrp_peers": "lb-2"},
            ["VRRP peers (vrrp_peers): must be an", "VRRP peers (vrrp_peers): the virtual"],
        ),
        (
            {"vrrp_peers": "10.0.0.11"},
            [
                "VRRP peers (vrrp_peers): has only this machine's own",
                "VRRP peers (vrrp_peers): the virtual IPs",
            ],
        ),
        (
            {"vrrp_peers": "2001:db8::12"},
            [
                "VRRP peers (vrrp_peers): none of them is of IPv4, as `10.0.0.200` is: that virtual IP",
                "VRRP peers (vrrp_peers): none of them is of IPv4, as `10.0.0.201` is: that virtual IP",
            ],
        ),
    ],
)
def test_what_the_virtual_ips_need(change: dict[str, str], messages: list[str]):
    """Without it they are left out, because two machines would hold them; the proxies serve."""
    found = settings({**ALL, **change})
    problems = list(map(str, found.problems))
    begins = [each.startswith(start) for each, start in zip(problems, messages, strict=True)]
    assert begins == [True] * len(problems)
    pools, routers = parts_of(found)
    assert routers == {}
    assert pools["masters"] == _POOLS["masters"]


def test_wrong_address_leaves_machine_config_out():
    """It serves secrets to the machine's own network, which is not known then."""
    assert "machine-config" not in parts_of(settings({**ALL, "address": "10.0.0.11"}))[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"api_vip": "api.example.com"}, "API virtual IP (api_vip): must be an address"),
        (
            {"api_vip": "10.0.0.1"},
            "API virtual IP (api_vip): `10.0.0.1` is the Gateway already; it is left out",
        ),
        (
            {"api_vip": "10.0.0.2", "dns": "10.0.0.2"},
            "API virtual IP (api_vip): `10.0.0.2` is one of the DNS",
        ),
        ({"api_vip": "10.0.0.12"}, "API virtual IP (api_vip): `10.0.0.12` is one of the VRRP peers"),
        ({"api_vip": "10.0.0.0"}, "API virtual IP (api_vip): `10.0.0.0` is the address of the network"),
        ({"api_vip": "10.0.0.255"}, "API virtual IP (api_vip): `10.0.0.255` is the address of the network"),
        ({"api_vip": "127.0.0.5"}, "API virtual IP (api_vip): `127.0.0.5` is no address at which"),
        ({"api_vip": "10.0.0.11"}, "API virtual IP (api_vip): `10.0.0.11` is this machine's own address"),
        (
            {"ingress_vip": "10.0.0.200"},
            "Ingress virtual IP (ingress_vip): `10.0.0.200` is the API virtual IP",
        ),
        (
            {"api_vip": "10.0.0.200, 10.0.0.202"},
            "API virtual IP (api_vip): has several addresses of one family",
        ),
    ],
)
def test_a_wrong_virtual_ip_costs_only_itself(change: dict[str, str], message: str):
    """The other one, and all servers, are as they would be."""
    found = settings({**ALL, **change})
    (problem,) = map(str, found.problems)
    assert problem.startswith(message)
    pools, routers = parts_of(found)
    (left_out,) = (each for each in _VIPS if f"{each}_vip" in change)
    assert (pools, routers) == (_POOLS, {name: each for name, each in _ROUTERS.items() if name != left_out})


@pytest.mark.parametrize(
    ("key", "traffic", "vip"), [("masters", "the API", "api"), ("routers", "ingress", "ingress")]
)
def test_without_one_server_that_is_right_the_virtual_ip_stays_with_the_others(
    key: str, traffic: str, vip: str
):
    """Here its connections would end; the other half of the section is used."""
    found = settings({**ALL, key: "x:y"})
    wrong, none, left_out = map(str, found.problems)
    assert wrong.endswith("; it is left out")
    assert none.endswith(f"none of them can be used: {traffic} is not served")
    assert left_out.endswith("is left out: no frontend here serves its connections")
    pools, routers = parts_of(found)
    assert set(routers) == set(_VIPS) - {vip}
    gone = {each for each in _POOLS if (each in _API_POOLS) == (key == "masters")}
    assert pools == {name: servers for name, servers in _POOLS.items() if name not in gone}


def test_a_lone_virtual_ip_needs_all_that_it_serves():
    """It would take the API's connections from a machine that serves them."""
    found = settings({**ALL, "ingress_vip": "", "masters": "x:y"})
    assert parts_of(found)[1] == {}


def test_a_family_that_is_left_out_leaves_the_other_alone():
    """A sync group of one is none."""
    written = {
        **ALL,
        "address": "10.0.0.11/24, 2001:db8::11/64",
        "api_vip": "10.0.0.200, 2001:db8::200",
    }
    found = settings(written)
    assert [each.key for each in found.problems] == ["vrrp_peers"]
    api, ingress = snapshot(replace(found, problems=())).virtual_routers
    assert (api.name, api.sync_group, ingress.name) == ("api-v4", None, "ingress")


def test_nothing_that_can_be_used_is_no_configuration():
    """What an earlier one serves is better than one that serves nothing."""
    written = {**ALL, "masters": "x:y", "routers": "x:y"}
    assert (settings(written).yaml, settings(written).refused) == (None, None)


def test_all_problems_come_at_once_in_the_order_of_the_form():
    """An administrator fills in the form once more, and not three times."""
    written = {**ALL, "vrrp_priority": "x", "hostname": "a b", "masters": "10.0.0.34:6443, a", "dns": "x"}
    problems = settings(written).problems
    assert [each.key for each in problems] == [
        "hostname",
        "dns",
        "masters",
        "vrrp_priority",
    ]


def test_cluster_without_anything_to_serve_is_told():
    """A name is not enough, nor are peers."""
    problems = told({**MACHINE, "cluster_name": "ocp4", "vrrp_peers": "10.0.0.12"})
    assert [each.partition(":")[0] for each in problems] == ["Masters (masters)", "VRRP peers (vrrp_peers)"]


def test_defaults_of_the_form_say_nothing():
    """A form that was not filled in sends them: no configuration, no problem."""
    found = settings({key: each.default for key, each in BY_KEY.items()})
    assert (found.yaml, found.refused, found.problems) == (None, None, ())


def test_virtual_ip_needs_an_interface():
    """Without one there is nothing to name in the file."""
    found = on_interface(ALL, None)
    (problem,) = map(str, found.problems)
    assert problem.endswith(
        "the virtual IPs are left out: this machine has no network interface to carry them"
    )
    assert parts_of(found) == (_POOLS, {})


def test_what_the_loader_refuses_is_kept_apart():
    """What only it can see is told with the path: the file is not for its place."""
    found = on_interface(ALL, "no name")
    assert found.yaml is None
    assert b"no name" in (found.refused or b"")
    assert "virtual_ips.api.interface" in str(found.problems[0])


def test_config_wins():
    """A whole configuration is used as it is, and that is noted where the form says something too."""
    text = b"cluster: { name: ocp4 }\n"
    found = settings({**ALL, "config": base64.b64encode(text).decode()})
    assert (found.yaml, found.refused, found.problems) == (text, None, ())
    assert any("config is used" in each for each in found.notes)


def test_errors_of_config_have_line_and_column():
    """They are those of `appliance check`; the simple fields do not step in."""
    text = b"api:\n  frontends:\n    a: { bind: [9445], pool: x }\n"
    found = settings({**ALL, "config": base64.b64encode(text).decode()})
    assert (found.yaml, found.refused) == (None, text)
    assert {(each.key, each.line) for each in found.problems} == {("config", 3)}
    assert "api.frontends.a.bind[0]" in str(found.problems[0])


def test_config_that_cannot_be_unpacked_is_one_problem():
    """Nor do the simple fields step in then."""
    found = settings({**ALL, "config": "????"})
    assert (found.yaml, found.refused) == (None, None)
    assert [each.key for each in found.problems] == ["config"]


def test_warnings_are_notes():
    """They do not refuse it."""
    found = settings({**MACHINE, "config": "pools: { a: {} }"})
    assert found.problems == ()
    assert any(each.startswith("configuration: ") for each in found.notes)


def test_misspelt_properties_are_problems_that_cost_nothing():
    """An ISO made by hand may have them; the rest of it is used."""
    found = settings({**ALL, "lb.gatway": "x"})
    assert "did you mean `gateway`?" in str(found.problems[0])
    assert found.yaml is not None


def test_a_peer_among_the_servers_is_told():
    """It may be that a load balancer runs there too: the configuration is made."""
    found = settings({**ALL, "masters": "10.0.0.34, 10.0.0.12"})
    assert "`10.0.0.12` is one of the VRRP peers too" in str(found.problems[0])
    assert found.yaml is not None


@pytest.mark.parametrize(
    ("address", "interface", "message"),
    [
        ("10.0.0.11/24", "ens192", "`10.0.0.11` is this machine's own address"),
        ("10.0.0.1/24", "ens192", "`10.0.0.1` is the Gateway"),
        ("10.0.0.200/24", "eth0", "no interface `eth0` here, but ens192"),
    ],
)
def test_config_that_does_not_fit_the_machine_is_told(address: str, interface: str, message: str):
    """It is used all the same: a whole configuration is its writer's."""
    text = f"virtual_ips: {{ a: {{ addresses: [{address}], interface: {interface}, router_id: 5 }} }}\n"
    found = settings({**MACHINE, "config": text})
    assert found.yaml is not None
    [problem] = map(str, found.problems)
    assert problem.startswith("appliance.yaml (config): virtual_ips.a: ")
    assert message in problem


VALUES = st.sampled_from([*ALL.values(), "", "x y", "10.0.0.34:6443", "2001:db8::5", "\\n", "{}", "0"])


@given(st.dictionaries(st.sampled_from(list(BY_KEY)), VALUES | st.text(max_size=20)))
def test_whatever_is_said_comes_out_right_or_told(written: dict[str, str]):
    """A configuration that is given passes the loader, and one that is not has problems."""
    found = settings(written)
    if found.yaml is not None:
        assert load(found.yaml, source="x", number=1).snapshot is not None
    if found.refused is not None:
        assert found.problems
    assert all(each.message for each in found.problems)


PAIR = """nodes: { lb-0: {}, lb-1: {} }
virtual_ips:
  a: { addresses: [10.0.0.200/24], interface: { lb-0: eth0, lb-1: ens192 }, router_id: 5, prefer: lb-0 }"""


def test_a_config_of_both_machines_is_judged_as_this_one():
    """One file is for all: the host name says which node this is, also with its domain."""
    found = settings({**MACHINE, "hostname": "lb-1.example.com", "config": PAIR})
    assert (found.yaml, found.problems) == (PAIR.encode(), ())
    [problem] = settings({**MACHINE, "hostname": "lb-0", "config": PAIR}).problems
    assert "no interface `eth0` here, but ens192" in str(problem)


def test_a_config_of_other_machines_is_refused():
    """It says which name this one has."""
    found = settings({**MACHINE, "hostname": "lb-7", "config": PAIR})
    assert found.refused == PAIR.encode()
    assert "this node is `lb-7`, which is not one of them" in str(found.problems[0])


NODES = {
    **ALL,
    "hostname": "lb-1",
    "nodes": "lb-1=10.0.0.11, lb-2=10.0.0.12",
    "vrrp_peers": "",
    "vrrp_priority": "",
}
FOUR = {
    **NODES,
    "servers_address": "10.0.1.11/24",
    "management_address": "10.0.2.11/24",
    "vrrp_address": "10.0.3.11/24",
    "nodes": "lb-1=10.0.3.11, lb-2=10.0.3.12",
    "page_password": "s3cret",
}
ADAPTERS = {Role.CLIENTS: "ens192", Role.SERVERS: "ens224", Role.MANAGEMENT: "ens256", Role.VRRP: "ens161"}


def on_adapters(written: dict[str, str], adapters: dict[Role, str]) -> GuestSettings:
    """Return what they amount to on a machine with these interfaces."""
    reader = property_reader(written)
    return guest_settings(reader, machine(reader), interfaces=tuple(adapters.values()), of_networks=adapters)


def routers_of(found: GuestSettings, node: str) -> list[tuple[int, tuple[str, ...]]]:
    """Return priority and peers of each virtual IP on a node."""
    loaded = load(found.yaml or b"", source="x", number=1, node=node)
    assert loaded.snapshot is not None
    return [(each.priority, each.peers) for each in loaded.snapshot.virtual_routers]


def test_load_balancers_are_named_once_for_all():
    """The same list on each machine: the first is preferred, and each sends to the others."""
    found = settings(NODES)
    assert found.problems == ()
    assert routers_of(found, "lb-1") == [(150, ("10.0.0.12",))] * 2
    assert routers_of(found, "lb-2") == [(140, ("10.0.0.11",))] * 2
    six = settings({**NODES, "address": "2001:db8::11/64", "api_vip": "2001:db8::100", "ingress_vip": "",
                    "gateway": "none", "nodes": "lb-1=2001:db8::11 lb-2=2001:db8::12"})  # fmt: skip
    assert routers_of(six, "lb-2") == [(140, ("2001:db8::11",))]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"hostname": "lb-9"}, "`lb-9`, is none of lb-1, lb-2"),
        ({"hostname": ""}, "is none of"),
        ({"nodes": "lb-1=10.0.0.99 lb-2=10.0.0.12"}, "no address of this machine"),
        ({"nodes": "lb-1=10.0.0.11"}, "two load balancers"),
        ({"nodes": "lb-1 lb-2=10.0.0.12"}, "two load balancers"),
        ({"nodes": "lb-1=10.0.0.11 lb-2=10.0.0.11 lb-3=10.0.0.13"}, "`10.0.0.11` twice"),
    ],
)
def test_a_list_of_load_balancers_that_is_wrong_leaves_virtual_ips_out(written: dict[str, str], message: str):
    """Two machines might hold them at a time; what needs no virtual IP is served."""
    found = settings({**NODES, **written})
    assert message in " ".join(map(str, found.problems))
    assert b"virtual_ips" not in (found.yaml or b"")
    assert b"kube-api" in (found.yaml or b"")


def test_peers_beside_load_balancers_mean_nothing():
    """That is said of both properties, and costs nothing."""
    found = settings({**NODES, "vrrp_peers": "10.0.0.12", "vrrp_priority": "110"})
    assert [each.key for each in found.problems] == ["vrrp_peers", "vrrp_priority"]
    assert routers_of(found, "lb-1") == [(150, ("10.0.0.12",))] * 2


def test_each_network_has_its_role():
    """Advertisements in the network of VRRP, addresses with the clients, the page with the management."""
    found = snapshot_of_node(on_adapters(FOUR, ADAPTERS))
    api, _ = found.virtual_routers
    assert (api.interface, api.addresses) == ("ens161", ("10.0.0.200/24",))
    assert api.elsewhere == (("10.0.0.200/24", "ens192"),)
    assert api.peers == ("10.0.3.12",)
    assert [each.target for each in api.track] == ["proxy-api", "ens192"]
    assert found.stats is not None
    frontends = {each.name: each for group in found.groups for each in group.frontends}
    assert frontends["machine-config"].allow == ("10.0.0.0/24", "10.0.1.0/24")
    text = (on_adapters(FOUR, ADAPTERS).yaml or b"").decode()
    assert 'bind: "10.0.2.11:29445"' in text
    assert 'also_bind: ["localhost:29445"]' in text


def snapshot_of_node(found: GuestSettings) -> Snapshot:
    """Return what lb-1 makes of it; nothing may be wrong."""
    assert found.problems == ()
    loaded = load(found.yaml or b"", source="x", number=1, node="lb-1")
    assert loaded.errors == ()
    assert loaded.snapshot is not None
    return loaded.snapshot


def test_page_without_a_network_of_its_own():
    """It is where the clients are, or everywhere where no address is known; a bad password is no page."""
    assert 'bind: "10.0.0.11:29445"' in (settings({**NODES, "page_password": "a"}).yaml or b"").decode()
    dhcp = {**CLUSTER, "page_password": "a"}
    assert 'bind: "[::]:29445"' in (settings(dhcp).yaml or b"").decode()
    managed = on_adapters({**FOUR, "management_address": "dhcp"}, ADAPTERS)
    assert 'bind: "[::]:29445"' in (managed.yaml or b"").decode()
    bad = settings({**NODES, "page_password": "\u00e4\0"})
    assert ([each.key for each in bad.problems], b"stats:" in (bad.yaml or b"")) == (["page_password"], False)


@pytest.mark.parametrize("adapters", [{Role.CLIENTS: "ens192"}, {Role.VRRP: "ens161"}])
def test_without_its_interface_there_is_no_virtual_ip(adapters: dict[Role, str]):
    """The advertisements would be where nobody hears them, or the address where no client is."""
    found = on_adapters(FOUR, adapters)
    assert b"virtual_ips" not in (found.yaml or b"")
    assert "left out" in " ".join(map(str, found.problems))


def test_a_password_beside_a_whole_configuration_is_no_password():
    """Which would be believed to be set."""
    found = settings({**MACHINE, "page_password": "s3cret", "config": "api: {}\n"})
    assert "page_password" in [each.key for each in found.problems]
