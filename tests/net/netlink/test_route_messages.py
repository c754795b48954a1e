"""What the kernel says of routes and rules: ours are read, others left out, damage is one error."""

import socket
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.snapshot.virtual_router import VirtualRoute, VirtualRule
from appliance.net.netlink import netlink
from appliance.net.netlink.netlink import Message
from appliance.net.netlink.route_messages import (
    add_route,
    add_rule,
    decode_route,
    decode_rule,
    remove_route,
    remove_rule,
)
from appliance.net.netlink.rtnetlink import DamagedMessage

pytestmark = pytest.mark.sockets

NEW_ROUTE, NEW_RULE = 24, 32
OURS, BIRD = 112, 12
ROUTES = [
    VirtualRoute(to="10.1.0.0/16", via="192.0.2.1", interface="eth0", table=70_000, metric=7, onlink=True),
    VirtualRoute(to="0.0.0.0/0", via="192.0.2.1", source="192.0.2.9"),
    VirtualRoute(to="::/0", via="fe80::1", interface="eth0", table=1),
]
RULES = [
    VirtualRule(source="192.0.2.0/24", table=70_000, priority=1),
    VirtualRule(source="fd00::1/128", to="fd01::/64", table=1, priority=32765),
]


def message(kind: int, body: bytes) -> Message:
    """Return a message of a kind with this behind its header."""
    (made,) = netlink.split(struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body)
    return made


def of_request(request: bytes, *, protocol: int = OURS) -> Message:
    """Return what the kernel says of what a request has added."""
    (made,) = netlink.split(request)
    route = made.kind == NEW_ROUTE
    body = bytearray(request[16:])
    if route:
        body[5] = protocol
    return message(made.kind, bytes(body))


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_a_route_of_ours_is_read(route: VirtualRoute) -> None:
    """Its place is what was added; who else's protocol it has is none of ours."""
    found = decode_route(of_request(add_route(route, 2)))
    assert found is not None
    assert found == VirtualRoute(to=route.to, table=route.table, metric=route.metric)
    assert decode_route(of_request(add_route(route, 2), protocol=BIRD)) is None


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_rule_of_ours_is_read(rule: VirtualRule) -> None:
    """It is what was added; a message about something else is none."""
    assert decode_rule(of_request(add_rule(rule))) == rule
    assert decode_rule(message(NEW_ROUTE, add_rule(rule)[16:])) is None
    assert decode_route(of_request(add_rule(rule))) is None


def test_damage_is_one_error() -> None:
    """A message that ends early, or a network that is none."""
    for body in (b"", add_route(ROUTES[0], 2)[16:24]):
        with pytest.raises(DamagedMessage):
            decode_route(message(NEW_ROUTE, body))
    header = bytes([socket.AF_INET, 40, 0, 0, 1, OURS, 0, 1, 0, 0, 0, 0])
    with pytest.raises(DamagedMessage):
        decode_route(message(NEW_ROUTE, header))


@given(body=st.binary(max_size=120), length=st.integers(0, 255), family=st.sampled_from((2, 10)))
def test_garbage_never_escapes(body: bytes, length: int, family: int) -> None:
    """Any bytes are one of ours that can be removed again, nothing of ours, or a damaged message."""
    head = bytes([family, length, 0, 0, 1, OURS, 0, 1, 0, 0, 0, 0])
    for each in (body, head + body, head + body[:1] + b"\0\x01\0" + body):
        with suppress(DamagedMessage):
            route = decode_route(message(NEW_ROUTE, each))
            assert route is None or remove_route(route)
        with suppress(DamagedMessage):
            rule = decode_rule(message(NEW_RULE, each))
            assert rule is None or remove_rule(rule)
