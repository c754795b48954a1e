"""The values of single guest properties: what is right is read, and what is wrong is told."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.keys import ECDSA, ED25519, RSA

from appliance.model.guest import fields
from appliance.model.guest.fields import parts, ssh_keys

pytestmark = pytest.mark.pure

READERS: list[Callable[[str], object]] = [
    fields.host_name,
    fields.own_address,
    fields.shared_address,
    fields.member,
    fields.peer,
    fields.priority,
    fields.ssh_key,
]


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (fields.host_name, "lb-1.example.com.", "lb-1.example.com"),
        (fields.own_address, "10.0.0.11/24", "10.0.0.11/24"),
        (fields.own_address, "10.0.0.11/255.255.254.0", "10.0.0.11/23"),
        (fields.own_address, "2001:DB8::0:11/64", "2001:db8::11/64"),
        (fields.shared_address, "10.0.0.200", "10.0.0.200"),
        (fields.shared_address, "10.0.0.200/24", "10.0.0.200/24"),
        (fields.member, "10.0.0.34", "10.0.0.34"),
        (fields.member, "2001:db8::34", "2001:db8::34"),
        (fields.member, "master-0.example.com", "master-0.example.com"),
        (fields.peer, "10.0.0.12", "10.0.0.12"),
        (fields.priority, "254", 254),
        (fields.ssh_key, ED25519, ED25519),
        (
            fields.ssh_key,
            f'restrict,from="10.0.0.0/8,::1" {RSA}',
            f'restrict,from="10.0.0.0/8,::1" {RSA}',
        ),
    ],
)
def test_right_values_are_read(read: Callable[[str], object], text: str, value: object):
    """Each reader returns the value in its usual spelling."""
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (fields.host_name, "lb 1", "not a DNS name"),
        (fields.host_name, "10.0.0.11", "is an address"),
        (fields.host_name, "a" * 60 + ".example", "64 characters"),
        (fields.own_address, "10.0.0.11", "`10.0.0.11/24`"),
        (fields.own_address, "2001:db8::11", "`2001:db8::11/64`"),
        (fields.own_address, "dhcp", "such as `10.0.0.11/24`"),
        (fields.own_address, "10.0.0.11/33", "0 to 32"),
        (fields.own_address, "10.0.0.0/24", "network itself"),
        (fields.own_address, "10.0.0.11/255.0.255.0", "netmask"),
        (fields.own_address, "10.0.0.11/ffff::", "netmask"),
        (fields.shared_address, "api.example.com", "must be an address"),
        (fields.member, "10.0.0.34:6443", "`10.0.0.34` alone"),
        (fields.member, "[2001:db8::34]:6443", "`2001:db8::34` alone"),
        (fields.member, "10.0.0.34/24", "`10.0.0.34` alone"),
        (fields.member, "0.0.0.0", "every address"),
        (fields.peer, "10.0.0.1/24", "`10.0.0.1` alone"),
        (fields.peer, "dns.example.com/x", "must be an address"),
        (fields.priority, "255", "1 to 254"),
        (fields.priority, "high", "1 to 254"),
        (fields.ssh_key, "ssh-ed25519", "not a public key"),
        (fields.ssh_key, "ssh-dss AAAAB3NzaC1kc3M= old", "not a public key"),
        (fields.ssh_key, ED25519[:20], "damaged"),
        (fields.ssh_key, ED25519.replace("ssh-ed25519", "ssh-rsa"), "damaged"),
        (fields.ssh_key, "ssh-rsa A me", "damaged"),
        (fields.ssh_key, f"{ED25519} {RSA}", "not a public key"),
    ],
)
def test_wrong_values_are_told_with_what_would_be_right(
    read: Callable[[str], object], text: str, message: str
):
    """Each reader's message has what was said, or what belongs there."""
    with pytest.raises(ValueError, match=message):
        read(text)


def test_lists_have_any_separator_and_tell_each_wrong_part():
    """Commas, semicolons and white space; the same part counts once."""
    found = parts("10.0.0.1, x;10.0.0.2\n10.0.0.1 y,", fields.peer)
    assert found.right == ("10.0.0.1", "10.0.0.2")
    assert len(found.wrong) == 2


@pytest.mark.parametrize("between", [",", ", ", ";", "\n", "\r\n\r\n", "\n# old\n"])
def test_keys_are_told_apart(between: str):
    """Keys may have commas or lines between them, and commas inside their options and comments."""
    written = [f'from="::1,127.0.0.1" {ED25519}, at work', RSA, ECDSA]
    found = ssh_keys(between.join(written))
    assert found.right == tuple(written)
    assert found.wrong == ()


def test_one_bad_key_costs_no_other():
    """The good ones are taken."""
    found = ssh_keys(f"{RSA}\nssh-ed25519 AAAA cut\n{ECDSA}")
    assert found.right == (RSA, ECDSA)
    assert len(found.wrong) == 1


def test_private_key_is_refused_and_not_shown():
    """A message must not spread it further."""
    found = ssh_keys("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n")
    assert found.right == ()
    assert "b3Blbn" not in str(found.wrong)
    assert ".pub" in str(found.wrong)


@given(st.sampled_from(READERS), st.text(max_size=80))
def test_garbage_never_escapes(read: Callable[[str], object], text: str):
    """Any text gives a value or ValueError."""
    with suppress(ValueError):
        read(text)


@given(st.text(max_size=200))
def test_garbage_among_keys_never_escapes(text: str):
    """Any text gives keys and messages, and no key has a line break in it."""
    assert not any("\n" in key or "\r" in key for key in ssh_keys(text).right)
