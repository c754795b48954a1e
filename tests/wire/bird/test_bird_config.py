"""BIRD's configuration as text; kernel/announce gives it to the real one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values import shared_ips as values
from support.values.shared_ips import shared_ip

from appliance.model.config.values.names import NAME_PATTERN
from appliance.model.snapshot.shared_ip import Bfd, Neighbor, SharedIp
from appliance.wire.bird.bird_config import BirdConfigError, BirdSettings, bird_config, needs_source, protocol

pytestmark = pytest.mark.pure


def shared(*addresses: str, name: str = "ingress", **changes: object) -> SharedIp:
    """Return a shared IP with these addresses."""
    return shared_ip(name, addresses=addresses, **changes)


def neighbor(name: str = "tor-a", address: str = "10.0.0.1", **changes: object) -> Neighbor:
    """Return a neighbour without BFD."""
    return values.neighbor(name, address=address, **{"bfd": None, **changes})


def text(
    *neighbors: Neighbor,
    ips: tuple[SharedIp, ...],
    restart: int = 15,
    key: str = "",
    sources: dict[str, str] | None = None,
) -> str:
    """Return the configuration."""
    bgp = values.bgp(*neighbors, graceful_restart=restart)
    passwords = {each.name: key for each in neighbors} if key else {}
    return bird_config(
        BirdSettings(
            bgp=bgp,
            shared=ips,
            router_id="10.0.0.11",
            passwords=passwords,
            sources=sources or {},
            log="/run/appliance/bird.log",
        )
    )


BOTH = shared("198.51.100.10/32", "2001:db8:10::10/128")


def test_a_session_carries_its_own_family():
    """IPv4 addresses go over IPv4, IPv6 ones over IPv6, both over a link-local session."""
    found = text(neighbor(), neighbor("b", "2001:db8::1"), neighbor("c", "fe80::1%eth0"), ips=(BOTH,))
    four, six, local = found.split("protocol bgp")[1:]
    assert ("ipv4 {" in four, "ipv6 {" in four) == (True, False)
    assert ("ipv4 {" in six, "ipv6 {" in six) == (False, True)
    assert ("ipv4 {" in local, "ipv6 {" in local) == (True, True)
    assert local.count("extended next hop on") == 1


def test_both_tables_are_read():
    """The table of drained addresses adds GRACEFUL_SHUTDOWN; a family without addresses has no tables."""
    found = text(neighbor(), ips=(shared("198.51.100.10/32"),))
    assert "kernel table 198" in found
    assert "kernel table 199" in found
    assert "bgp_community.add((65535, 0))" in found
    assert "ipv6" not in found
    assert 'log "/run/appliance/bird.log" 262144 "/run/appliance/bird.log.1" {' in found


def test_options_of_a_neighbour():
    """Each key of the configuration has its word."""
    bfd = Bfd(interval=0.05, multiplier=4)
    found = text(
        neighbor(bfd=bfd, multihop=2, ttl_security=True, port=1179, hold=3), ips=(BOTH,), key="s3cret"
    )
    for word in (
        'password "s3cret";',
        "multihop 2;",
        "ttl security on;",
        "bfd { interval 50 ms; multiplier 4; };",
        "neighbor 10.0.0.1 port 1179 as 64600;",
        "hold time 3; keepalive time 1;",
        "graceful restart time 15;",
    ):
        assert word in found
    assert "direct;" not in found
    plain = text(neighbor(), neighbor("b", "10.0.0.2", asn=64512), ips=(BOTH,), restart=0)
    assert plain.count("direct;") == 1
    assert "graceful restart" not in plain


def test_bfd_over_several_hops_needs_the_address_of_this_node():
    """BIRD refuses it otherwise; a session on the segment has none."""
    bfd = Bfd(interval=0.1, multiplier=3)
    far, near = neighbor(bfd=bfd, multihop=2), neighbor("b", "10.0.0.2", bfd=bfd)
    inside, local = (
        neighbor("c", "10.0.0.3", bfd=bfd, asn=64512),
        neighbor("d", "fe80::1%eth0", bfd=bfd, asn=64512),
    )
    by = values.bgp(far, near, inside, local)
    assert [needs_source(each, by) for each in by.neighbors] == [True, False, True, False]
    assert not needs_source(neighbor(multihop=2), by)
    assert "local 10.0.0.9 as 64512;" in text(far, ips=(BOTH,), sources={"tor-a": "10.0.0.9"})
    assert "direct;" in text(local, ips=(BOTH,))


def test_an_address_goes_to_its_neighbours():
    """A shared IP that names neighbours is announced to no other; its communities are added."""
    named = shared("198.51.100.11/32", name="api", neighbors=("b",), communities=("64512:100", "64512:7"))
    found = text(neighbor(), neighbor("b", "10.0.0.2"), ips=(BOTH, named))
    one, other = found.split("protocol bgp")[1:]
    assert "198.51.100.11" not in one
    assert "bgp_community.add((64512, 100)); bgp_community.add((64512, 7)); accept;" in other
    six = shared("2001:db8:10::11/128", name="six")
    alone = text(neighbor(), neighbor("b", "10.0.0.2"), ips=(named, six))
    assert "ipv4 {" not in alone.split("protocol bgp")[1]


def test_a_password_that_cannot_be_written_is_refused():
    """A file may hold anything: what would end the text is an error, without the password in it."""
    with pytest.raises(BirdConfigError, match="tor-a") as caught:
        text(neighbor(), ips=(BOTH,), key='a"; include "/etc/shadow')
    assert "shadow" not in str(caught.value)


@given(st.from_regex(NAME_PATTERN, fullmatch=True), st.from_regex(NAME_PATTERN, fullmatch=True))
def test_names_of_protocols(one: str, other: str):
    """Every name of a neighbour is a symbol of BIRD, and two names are two symbols."""
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", protocol(one))
    assert (protocol(one) == protocol(other)) == (one == other)
