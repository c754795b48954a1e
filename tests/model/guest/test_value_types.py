"""The values of single guest properties: what is right is read, and what is wrong is told."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.guest import value_types

pytestmark = pytest.mark.pure

READERS: list[Callable[[str], object]] = [
    value_types.host_name,
    value_types.own_address,
    value_types.virtual_ip,
    value_types.member,
    value_types.host_address,
    value_types.gateway,
    value_types.priority,
]


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (value_types.host_name, "lb-1.example.com.", "lb-1.example.com"),
        (value_types.own_address, "10.0.0.11/24", "10.0.0.11/24"),
        (value_types.own_address, "10.0.0.11/255.255.254.0", "10.0.0.11/23"),
        (value_types.own_address, "2001:DB8::0:11/64", "2001:db8::11/64"),
        (value_types.virtual_ip, "10.0.0.200", "10.0.0.200"),
        (value_types.virtual_ip, "10.0.0.200/24", "10.0.0.200/24"),
        (value_types.member, "10.0.0.34", "10.0.0.34"),
        (value_types.member, "2001:db8::34", "2001:db8::34"),
        (value_types.member, "master-0.example.com", "master-0.example.com"),
        (value_types.member, "M-0.Example.com.", "m-0.example.com"),
        (value_types.host_address, "10.0.0.12", "10.0.0.12"),
        (value_types.gateway, "10.0.0.1/24", "10.0.0.1"),
        (value_types.own_address, "10.0.0.11/31", "10.0.0.11/31"),
        (value_types.own_address, "10.0.0.255/23", "10.0.0.255/23"),
        (value_types.priority, "254", 254),
    ],
)
def test_right_values_are_read(read: Callable[[str], object], text: str, value: object):
    """Each reader returns the value in its usual spelling."""
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (value_types.host_name, "lb 1", "not a DNS name"),
        (value_types.host_name, "10.0.0.11", "is an address"),
        (value_types.host_name, "a" * 60 + ".example", "64 characters"),
        (value_types.own_address, "10.0.0.11", "`10.0.0.11/24`"),
        (value_types.own_address, "2001:db8::11", "`2001:db8::11/64`"),
        (value_types.own_address, "dhcp", "such as `10.0.0.11/24`"),
        (value_types.own_address, "10.0.0.11/33", "0 to 32"),
        (value_types.own_address, "10.0.0.0/24", "network itself"),
        (value_types.own_address, "10.0.0.11/255.0.255.0", "netmask"),
        (value_types.own_address, "10.0.0.11/ffff::", "netmask"),
        (value_types.virtual_ip, "api.example.com", "must be an address"),
        (value_types.member, "10.0.0.34:6443", "`10.0.0.34` alone"),
        (value_types.member, "[2001:db8::34]:6443", "`2001:db8::34` alone"),
        (value_types.member, "https://10.0.0.34:6443/x", "is a URL: `10.0.0.34` alone"),
        (value_types.member, "https://m.example.com", "is a URL: `m.example.com` alone"),
        (value_types.member, "10.0.0.34-36", "is a range"),
        (value_types.own_address, "10.0.0.255/24", "broadcast"),
        (value_types.own_address, "127.0.0.1/8", "no address at which"),
        (value_types.own_address, "0.1.2.3/24", "no address at which"),
        (value_types.own_address, "240.0.0.1/24", "no address at which"),
        (value_types.own_address, "::1/128", "no address at which"),
        (value_types.own_address, "224.0.0.1/24", "no address of one host"),
        (value_types.own_address, "10.0.0.11/1", "half the world"),
        (value_types.own_address, "2001:db8::11/3", "half the world"),
        (value_types.own_address, "fe80::1/64", "link-local"),
        (value_types.virtual_ip, "127.0.0.5", "no address at which"),
        (value_types.virtual_ip, "10.0.0.255/24", "broadcast"),
        (value_types.member, "10.0.0.34/24", "`10.0.0.34` alone"),
        (value_types.member, "0.0.0.0", "every address"),
        (value_types.host_address, "10.0.0.1/24", "`10.0.0.1` alone"),
        (value_types.host_address, "dns.example.com/x", "must be an address"),
        (value_types.gateway, "router", "such as `10.0.0.1`"),
        (value_types.priority, "255", "1 to 254"),
        (value_types.priority, "high", "1 to 254"),
    ],
)
def test_wrong_values_are_told_with_what_would_be_right(
    read: Callable[[str], object], text: str, message: str
):
    """Each reader's message has what was said, or what belongs there."""
    with pytest.raises(ValueError, match=message):
        read(text)


@pytest.mark.parametrize("text", ["A" * 60000 + ":1", "A" * 60000 + "/1", "x://" + "A" * 60000])
def test_messages_stay_short(text: str):
    """Whatever is written comes out in a line or two."""
    with pytest.raises(ValueError, match="alone") as caught:
        value_types.member(text)
    assert len(str(caught.value)) < 250


@given(st.sampled_from(READERS), st.text(max_size=80))
def test_garbage_never_escapes(read: Callable[[str], object], text: str):
    """Any text gives a value or ValueError."""
    with suppress(ValueError):
        read(text)
