"""`model.config.values.addresses`: addresses, networks and names; what is refused stands in the corpus."""

import re
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.config.values.addresses import (
    ENDPOINT_PATTERN,
    Endpoint,
    dns_name,
    endpoint,
    host,
    literal,
    network,
    port_range,
    server_endpoint,
    server_host,
)
from appliance.model.config.values.names import file_path, group_name, name

pytestmark = pytest.mark.pure

ADDRESS_LIKE = st.text("0123456789abcdef:.[]/%-", max_size=30)
ANYTHING = st.none() | st.booleans() | st.integers() | st.text() | ADDRESS_LIKE


@pytest.mark.parametrize(
    ("text", "host_part", "port"),
    [
        ("10.0.0.34:6443", "10.0.0.34", 6443),
        ("[2001:DB8:0::34]:6443", "2001:db8::34", 6443),
        ("[::]:1", "::", 1),
        ("[::ffff:10.0.0.34]:65535", "10.0.0.34", 65535),
        ("[fe80::1%ens192]:80", "fe80::1%ens192", 80),
        ("[10.0.0.34]:80", "10.0.0.34", 80),
        ("localhost:80", "localhost", 80),
        ("Master-0.example.com.:80", "Master-0.example.com.", 80),
    ],
)
def test_endpoints(text: str, host_part: str, port: int):
    """An endpoint is a plain host, mapped addresses as IPv4, and a port."""
    found = endpoint(text)

    assert (found.host, found.port) == (host_part, port)


@pytest.mark.parametrize(
    "text", ["10.0.0.34", "[2001:db8::34]", "127.0.0.1", "[::1]", "master-0.example.com"]
)
def test_one_machine_is_a_server(text: str):
    """A server's address is an address or a name, with or without its port."""
    found = server_endpoint(f"{text}:6443")

    assert (str(found), server_host(text)) == (f"{text}:6443", text.strip("[]"))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("0.0.0.0", "every address of this machine"),
        ("[::]", "every address of this machine"),
        ("[::ffff:0.0.0.0]", "every address of this machine"),
        ("224.0.0.18", "multicast or broadcast"),
        ("[ff02::12]", "multicast or broadcast"),
        ("[ff02::12%ens192]", "multicast or broadcast"),
        ("[::ffff:224.0.0.18]", "multicast or broadcast"),
        ("255.255.255.255", "multicast or broadcast"),
    ],
)
def test_many_machines_are_no_server(text: str, fault: str):
    """An address that is not one machine's cannot be connected to, or would be this machine by chance."""
    for read, value in ((server_endpoint, f"{text}:6443"), (server_host, text)):
        with pytest.raises(ValueError, match=fault):
            read(value)


@pytest.mark.parametrize(("text", "is_literal"), [("[::1]:1", True), ("a:1", False)])
def test_endpoints_print_as_they_are_written(text: str, *, is_literal: bool):
    """An IPv6 address gets its brackets back, and a literal is known as one."""
    found = endpoint(text)

    assert (str(found), literal(found.host) is not None) == (text, is_literal)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("10.0.0.0/24", "10.0.0.0/24"),
        ("10.0.0.66", "10.0.0.66/32"),
        ("2001:db8::/64", "2001:db8::/64"),
        ("2001:db8::1", "2001:db8::1/128"),
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("0.0.0.0/0", "0.0.0.0/0"),
    ],
)
def test_networks(text: str, canonical: str):
    """A network is told in CIDR form, a mapped one as IPv4."""
    assert network(text) == canonical


@pytest.mark.parametrize("text", ["web_1", "_a", "a_", "_", "my_db.example_net.", "_" * 63])
def test_a_machine_may_have_an_underscore_in_its_name(text: str):
    """Docker's DNS and hosts files know such names, and HAProxy asks for them."""
    assert (host(text), server_host(text), endpoint(f"{text}:1").host) == (text, text, text)
    assert re.fullmatch(ENDPOINT_PATTERN, f"{text}:1")
    with pytest.raises(ValueError, match="letters, digits, hyphens and underscores"):
        host(f"{text}!")


@pytest.mark.parametrize("text", ["a" * 64, "a..b", "-a", "a-", "a_b", "", ".", "a." * 127 + "a"])
def test_what_is_no_dns_name(text: str):
    """Labels are 1 to 63 letters, digits and inner hyphens, names at most 253 characters."""
    with pytest.raises(ValueError, match="DNS name"):
        dns_name(text)


@pytest.mark.parametrize("value", [5.5, None, True, [], {}])
def test_what_is_no_text_at_all(value: object):
    """Something else than text is refused by name."""
    with pytest.raises(ValueError, match="must be an address or a DNS name, not"):
        host(value)


def test_a_file_is_absolute():
    """A path from the root is taken as it is."""
    assert file_path("/etc/appliance/ca.pem") == "/etc/appliance/ca.pem"


@pytest.mark.parametrize(
    "read",
    [endpoint, server_endpoint, host, server_host, dns_name, network, port_range, file_path, group_name],
)
@given(value=ANYTHING)
def test_garbage_never_escapes(read: Callable[[object], object], value: object):
    """Whatever a file holds gives a value or ValueError."""
    with suppress(ValueError):
        assert str(read(value))


@given(st.integers(1, 65535), st.ip_addresses())
def test_every_address_with_every_port(port: int, address: object):
    """What prints as an endpoint reads as the same endpoint."""
    first = endpoint(f"[{address}]:{port}")

    assert endpoint(str(first)) == first


@pytest.mark.parametrize("text", ["a", "master-0.example_1", "x" * 63])
def test_names(text: str):
    """Letters, digits, dots, hyphens and underscores make a name."""
    assert name(text) == text


@pytest.mark.parametrize("text", ["", "x" * 64, "a b", "a/b", "ä", "a\n"])
def test_what_is_no_name(text: str):
    """A name fits a record of a board and the name of a file."""
    with pytest.raises(ValueError, match="is not a name"):
        name(text)


def test_ranges_of_ports():
    """Both ends belong to a range, which may be a single port."""
    assert port_range("20000-39999") == (20000, 39999)
    assert port_range("1024-1024") == (1024, 1024)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("20000", "is not a range"),
        ("a-b", "is not a range"),
        ("20000-", "is not a range"),
        ("1000-2000", "below 1024"),
        ("20000-70000", "is not a port"),
        ("30000-20000", "write `20000-30000`"),
        (True, "must be a range"),
    ],
)
def test_what_is_no_range_of_ports(text: object, fault: str):
    """Each message says what would be right."""
    with pytest.raises(ValueError, match=fault):
        port_range(text)


@given(st.ip_addresses(v=4), st.integers(0, 70_000))
def test_the_usual_form_of_a_server_means_what_the_others_mean(address: IPv4Address, port: int):
    """It is read in one step: any address and port comes out as by the long way, or is refused as there."""

    def read(text: str) -> Endpoint | str:
        try:
            return server_endpoint(text)
        except ValueError as error:
            return str(error).replace(f"[::ffff:{address}]", str(address))

    assert read(f"{address}:{port}") == read(f"[::ffff:{address}]:{port}")
