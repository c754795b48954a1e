"""What another daemon of the host needs: for each configuration the lines of FRR and of BIRD."""

import pytest
from support.values.shared_ips import bgp, neighbor, shared_ip

from appliance.model.snapshot.shared_ip import Bgp, Engine, SharedIp
from appliance.wire.bgp_examples.bird_example import bird_example
from appliance.wire.bgp_examples.frr_example import frr_example

pytestmark = pytest.mark.pure

TOR_A = neighbor()
TOR_B = neighbor("tor-b", address="fd00::1", port=1179, password="secret", bfd=None, hold=30)  # noqa: S106  # no secret
TOR_C = neighbor("tor-c", address="fe80::1%ens192", password_file="/etc/bgp.pass", ttl_security=True)  # noqa: S106  # no secret
TOR_D = neighbor("tor-d", address="10.9.0.1", multihop=2)
INTERNAL = neighbor("tor-e", address="10.9.0.2", multihop=2, asn=64512)


def daemon(*neighbors: object, **changes: object) -> Bgp:
    """Return BGP of another daemon."""
    return bgp(*neighbors, engine=Engine.TABLE, **changes)  # type: ignore[arg-type]  # the test's own fields


def test_frr_of_one_router():
    """The tables, the session with BFD, both policies, and the community of drained addresses."""
    given = shared_ip("web", addresses=("198.51.100.10/32",), communities=("64512:100",))
    assert frr_example(daemon(TOR_A), (given,), router_id="10.0.0.11").splitlines()[5:] == [
        "ip import-table 198 distance 15",
        "ip import-table 199 distance 16",
        "bfd",
        " profile tor-a",
        "  detect-multiplier 3",
        "  receive-interval 100",
        "  transmit-interval 100",
        " exit",
        "exit",
        "ip prefix-list LB-web seq 5 permit 198.51.100.10/32",
        "router bgp 64512",
        " bgp router-id 10.0.0.11",
        " neighbor 10.0.0.1 remote-as 64600",
        " neighbor 10.0.0.1 timers 3 9",
        " neighbor 10.0.0.1 timers connect 5",
        " neighbor 10.0.0.1 bfd profile tor-a",
        " address-family ipv4 unicast",
        "  redistribute table 198 route-map LB-SERVE",
        "  redistribute table 199 route-map LB-DRAIN",
        "  neighbor 10.0.0.1 activate",
        "  neighbor 10.0.0.1 route-map LB-IN in",
        "  neighbor 10.0.0.1 route-map LB-OUT-tor-a out",
        " exit-address-family",
        "exit",
        "route-map LB-SERVE permit 10",
        " match ip address prefix-list LB-web",
        " set origin igp",
        " set metric 0",
        " set community 64512:100 additive",
        "exit",
        "route-map LB-DRAIN permit 10",
        " match ip address prefix-list LB-web",
        " set origin igp",
        " set metric 0",
        " set community 64512:100 graceful-shutdown additive",
        "exit",
        "route-map LB-OUT-tor-a permit 10",
        " match ip address prefix-list LB-web",
        "exit",
        "route-map LB-IN deny 10",
        "exit",
    ]


def test_every_kind_of_session_of_frr():
    """Port, timers, hops and the interface stand where they differ from FRR's defaults; no password does."""
    lines = frr_example(
        daemon(TOR_B, TOR_C, TOR_D, INTERNAL), (shared_ip(),), router_id="10.0.0.11"
    ).splitlines()
    assert not [each for each in lines if "secret" in each]
    for each in (
        " neighbor fd00::1 port 1179",
        " neighbor fd00::1 timers 10 30",
        "! the password of `tor-b` is in the configuration:",
        " neighbor fd00::1 password REPLACE-ME",
        "  no neighbor fd00::1 activate",
        " neighbor fe80::1 interface ens192",
        " neighbor fe80::1 capability extended-nexthop",
        "! the password of `tor-c` is in /etc/bgp.pass:",
        " neighbor fe80::1 ttl-security hops 1",
        " neighbor 10.9.0.1 ebgp-multihop 2",
        "!  redistribute table-direct 198 route-map LB-SERVE6",
        "!  no neighbor 10.9.0.1 activate",
    ):
        assert each in lines
    assert " neighbor 10.9.0.2 ebgp-multihop 2" not in lines


def test_without_bfd_there_is_no_profile():
    """A session without BFD needs no bfdd."""
    assert "bfd" not in frr_example(daemon(TOR_B), (shared_ip(),), router_id="10.0.0.11").splitlines()


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        (shared_ip(neighbors=("tor-b",)), "route-map LB-OUT-tor-a deny 10"),
        (shared_ip(addresses=("2001:db8::1/128",)), "route-map LB-OUT-tor-a deny 10"),
        (shared_ip(neighbors=("tor-a",)), "route-map LB-OUT-tor-a permit 10"),
    ],
)
def test_a_neighbour_gets_what_is_meant_for_it(given: SharedIp, policy: str):
    """A router that an address is not for, or that has no session of its family, learns nothing."""
    assert policy in frr_example(daemon(TOR_A), (given,), router_id="10.0.0.11").splitlines()


def test_bird():
    """It is what our own BIRD would have, without passwords, and without what its file may have already."""
    text = bird_example(daemon(TOR_A, TOR_B, TOR_C), (shared_ip(),), router_id="10.0.0.11")
    assert "# the password of `tor-c` is in /etc/bgp.pass\nlog syslog all;\nrouter id 10.0.0.11;\n" in text
    assert text.count("router id") == 2  # the other one is in the first comment
    assert text.count('password "REPLACE-ME";') == 2
    assert "secret" not in text
    assert "kernel table 198;" in text
    assert "log stderr" not in text
