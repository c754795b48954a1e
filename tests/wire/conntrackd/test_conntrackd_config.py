"""conntrackd's configuration as text; kernel/forward gives it to the real one."""

from dataclasses import replace

import pytest

from appliance.wire.conntrackd.conntrackd_config import (
    MOST_IGNORED,
    Channel,
    ConntrackdSettings,
    conntrackd_config,
)

pytestmark = pytest.mark.pure

FOUR = Channel(interface="eth0", family=4, own="10.0.0.11", peer=None, group=42)
SIX = replace(FOUR, family=6, own="fe80::1")
SETTINGS = ConntrackdSettings(
    channel=FOUR,
    reports=True,
    ignored=("127.0.0.1", "::1", "10.0.0.11"),
    in_kernel=True,
    control="/run/a.ctl",
    lock="/run/a.lock",
)


def text(**changes: object) -> str:
    """Return the configuration."""
    return conntrackd_config(replace(SETTINGS, **changes))  # type: ignore[arg-type]  # the test's own fields


def test_multicast_is_of_the_virtual_router():
    """Another cluster on the segment has another number, and so another group."""
    assert (
        "Multicast {\n    IPv4_address 225.0.112.42\n    Group 3780\n    IPv4_interface 10.0.0.11" in text()
    )
    six = text(channel=SIX)
    assert "Multicast {\n    IPv6_address ff02::4c42:2a\n    Group 3780\n    Interface eth0" in six


@pytest.mark.parametrize(("channel", "peer"), [(FOUR, "10.0.0.12"), (SIX, "fe80::2")])
def test_a_peer_gets_unicast(channel: Channel, peer: str):
    """From this node's address to its, on conntrackd's port."""
    found = text(channel=replace(channel, peer=peer))
    version = f"IPv{channel.family}"
    lines = f"UDP {{\n    {version}_address {channel.own}\n    {version}_Destination_Address {peer}\n"
    assert f"{lines}    Port 3780\n    Interface eth0\n" in found
    assert "Multicast" not in found


def test_a_node_without_virtual_ips_tells_nothing():
    """Entries of other nodes expire there, which ends no connection."""
    assert "Protocol Accept { TCP }" in text()
    assert "TCP }" not in text(reports=False).replace("for TCP }", "")


def test_addresses_are_ignored_by_family():
    """In the kernel as many as its filter has room for, in conntrackd all."""
    assert "IPv4_address 127.0.0.1\n      IPv6_address ::1\n      IPv4_address 10.0.0.11\n" in text()
    many = tuple(f"10.1.{each >> 8}.{each & 255}" for each in range(300))
    kernel, own = text(ignored=many), text(ignored=many, in_kernel=False)
    assert (kernel.count("_address 10.1."), own.count("_address 10.1.")) == (MOST_IGNORED, 300)
    assert ("From Kernelspace" in kernel, "From Userspace" in own) == (True, True)
