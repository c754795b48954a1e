"""Where virtual addresses are, and who is told of them."""

import socket
from dataclasses import replace

import pytest
from support.values.snapshots import snapshot, virtual_router

from appliance.linger.address_sets import (
    AddressSet,
    SharedSet,
    address_sets,
    entrances,
    indexes,
    shared_sets,
)
from appliance.model.snapshot.linger import Linger, Vxlan
from appliance.model.snapshot.shared_ip import SharedIp, Unhealthy

pytestmark = pytest.mark.pure


def test_one_place_for_each_interface_and_family():
    """Those of one interface and family are told together, by multicast where one of them has no peers.

    What is held on another interface than the adverts' is told to nobody.
    """
    routers = [
        virtual_router("a", interface="eth0", addresses=("192.0.2.100/24",), peers=("192.0.2.2",)),
        virtual_router(
            "m", router_id=42, virtual_mac=True, addresses=("192.0.2.102/24",), peers=("192.0.2.2",)
        ),
        virtual_router(
            "b",
            interface="eth0",
            addresses=("192.0.2.101/24", "198.51.100.7/24"),
            elsewhere=(("198.51.100.7/24", "eth1"),),
            peers=(),
        ),
        virtual_router("n", interface="eth5", addresses=(), peers=()),
        virtual_router("c", interface="eth0", addresses=("fd00:0::100/64",), family=6, peers=("fd00::2",)),
    ]
    assert list(address_sets(snapshot(groups=[], pools=[], virtual_routers=routers))) == [
        AddressSet(
            interface="eth0",
            family=4,
            routers={"192.0.2.100": "a", "192.0.2.102": "m", "192.0.2.101": "b"},
            peers=("192.0.2.2",),
            multicast=True,
            virtual_macs=(42,),
        ),
        AddressSet(
            interface="eth0", family=6, routers={"fd00::100": "c"}, peers=("fd00::2",), multicast=False
        ),
    ]


def test_by_which_interfaces_packets_come_in():
    """Those for a virtual MAC by its macvlan too, which is there while it is needed."""
    routers = {"192.0.2.1": "a"}
    here = AddressSet(interface="lo", family=4, routers=routers, peers=(), multicast=True, virtual_macs=(42,))
    gone = replace(here, interface="lb-none0")
    index = socket.if_nametoindex("lo")
    assert entrances([here, gone]) == (("lo", "lo"), (f"vrrp4.{index}.42", "lo"), ("lb-none0", "lb-none0"))
    assert indexes([here, gone]) == {"192.0.2.1": index}


def test_shared_addresses_by_family():
    """Each family has the addresses of all shared IPs, and the peers that it can reach."""
    shared = [
        SharedIp(
            name=name,
            addresses=addresses,
            track=(),
            unhealthy=Unhealthy.LAST_RESORT,
            communities=(),
            drain=5.0,
            neighbors=(),
        )
        for name, addresses in {
            "a": ("198.51.100.10/32", "2001:db8:10::10/128"),
            "b": ("198.51.100.11/32",),
        }.items()
    ]
    linger = Linger(longest=60.0, port=29446, keys=(), peers=("192.0.2.2", "fd00::2", "192.0.2.3"))
    given = replace(snapshot(groups=[], pools=[]), shared_ips=tuple(shared), linger=linger)
    four = ("198.51.100.10", "198.51.100.11")
    assert list(shared_sets(given)) == [
        SharedSet(family=4, addresses=four, peers=("192.0.2.2", "192.0.2.3")),
        SharedSet(family=6, addresses=("2001:db8:10::10",), peers=("fd00::2",)),
    ]
    assert [each.peers for each in shared_sets(replace(given, linger=None))] == [(), ()]
    assert given.linger is not None
    led = replace(given, linger=replace(given.linger, vxlan=Vxlan(vni=1, port=29447, mtu=None)))
    four_led, six_led = shared_sets(led)
    assert four_led.peers == ("240.0.2.2", "240.0.2.3")
    assert [*map(four_led.named, (*four_led.peers, "192.0.2.9"))] == ["192.0.2.2", "192.0.2.3", "192.0.2.9"]
    assert [*map(six_led.named, six_led.peers)] == ["fd00::2"]
    assert list(shared_sets(replace(given, shared_ips=()))) == []
