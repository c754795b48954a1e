"""Who may connect: rules by network become `allow` and `deny` where these say exactly the same."""

from ipaddress import ip_address, ip_network
from itertools import product

import pytest
from support.translation.haproxy_files import frontend

from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure

A, B = "10.0.0.0/8", "192.0.2.0/24"


def lists(*lines: str) -> tuple[list[str], list[str]]:
    """Return the lists of a frontend with these lines, none of which is refused."""
    found = frontend(*lines)
    assert found.refused == []
    return list(found.frontend().allow), list(found.frontend().deny)


@pytest.mark.parametrize(
    ("lines", "allow", "deny"),
    [
        ([f"tcp-request connection reject if {{ src {A} {B} }}"], [], [A, B]),
        ([f"tcp-request connection reject unless {{ src {A} }}"], [A], []),
        ([f"tcp-request connection reject if !{{ src {A} }}"], [A], []),
        ([f"tcp-request connection reject if ! {{ src {A} }}"], [A], []),
        ([f"tcp-request connection reject unless !{{ src {A} }}"], [], [A]),
        ([f"acl lan src {A}", f"acl lan src {B}", "tcp-request connection reject if !lan"], [A, B], []),
        ([f"acl lan src -m ip {A} --", "tcp-request session reject unless lan"], [A], []),
        ([f"tcp-request connection accept if {{ src {A} }}", "tcp-request connection reject"], [A], []),
        (
            [
                f"tcp-request connection accept if {{ src {A} }} || {{ src {B} }}",
                "tcp-request connection reject",
            ],
            [A, B],
            [],
        ),
        (
            [
                "tcp-request connection reject if { src 10.0.0.66 }",
                f"tcp-request connection accept if {{ src {A} }}",
                "tcp-request connection reject",
            ],
            [A],
            ["10.0.0.66/32"],
        ),
        (
            [
                f"tcp-request connection accept if {{ src {A} }}",
                f"tcp-request connection reject if {{ src {B} }}",
            ],
            [],
            [B],
        ),
        (["tcp-request connection accept"], [], []),
    ],
)
def test_what_lists_can_say(lines: list[str], allow: list[str], deny: list[str]):
    """The lists are those that let in the same clients."""
    assert lists(*lines) == (allow, deny)


def test_an_accept_that_changes_nothing():
    """Nobody is rejected behind it: it is ignored."""
    found = frontend(f"tcp-request connection accept if {{ src {A} }}")
    assert found.outcome("tcp-request") is Outcome.IGNORED


@pytest.mark.parametrize(
    ("lines", "refused"),
    [
        (["tcp-request connection reject"], "nobody could connect"),
        (
            ["tcp-request connection accept", "tcp-request connection reject"],
            "no connection comes to this rule",
        ),
        (["tcp-request connection reject if { src_port 1 }"], "networks of clients are"),
        (["tcp-request connection reject if { src }"], "`src` needs networks"),
        (["tcp-request connection reject if { src -f /etc/x }"], "is not a network"),
        (["tcp-request connection reject if { src 10.0.0.1/8 }"], "has bits set beyond its prefix"),
        (["tcp-request connection reject if unknown"], "`unknown` is not asked"),
        (["tcp-request connection reject if"], "`if` or `unless` and a condition"),
        (["tcp-request connection reject when x"], "`if` or `unless` and a condition"),
        (["tcp-request connection reject if or"], "a condition is missing"),
        ([f"tcp-request connection reject if {{ src {A} }} {{ src {B} }}"], "must all hold"),
        ([f"tcp-request connection reject if {{ src {A} }} or !{{ src {B} }}"], "one `acl` with all"),
        ([f"tcp-request connection reject if !{{ src {A} }} or !{{ src {B} }}"], "one `acl` with all"),
        ([f"tcp-request connection accept if !{{ src {A} }}"], "write who is rejected"),
        (
            [
                f"tcp-request connection accept if {{ src {A} }}",
                "tcp-request connection reject if { src 10.1.0.0/16 }",
            ],
            "overlaps with what was accepted before",
        ),
        (["tcp-request connection expect-proxy layer4"], "`expect-proxy` is not done"),
        (["acl x"], "a name and a criterion"),
        (["tcp-request content reject if { src 10.0.0.1 }"], "write `tcp-request connection reject`"),
        (["tcp-request content set-var(x) src"], "what clients send is not looked at"),
        (["use_backend c if { src 10.0.0.1 }"], "are not routed by a condition"),
    ],
)
def test_what_lists_cannot_say(lines: list[str], refused: str):
    """It is refused, with what to write."""
    assert refused in frontend(*lines).refused[0]


def test_lists_of_tests():
    """An `acl` that no obeyed rule asks for is ignored; the others are kept."""
    found = frontend(f"acl lan src {A}", "acl other path /x", "tcp-request connection reject unless lan")
    assert found.outcome("acl lan") is Outcome.KEPT
    assert found.outcome("acl other") is Outcome.IGNORED


def test_content_that_is_accepted():
    """It only waits, and nobody waits here."""
    found = frontend("tcp-request inspect-delay 5s", "tcp-request content accept if { req_ssl_hello_type 1 }")
    assert {each.outcome for each in found.lines("tcp-request")} == {Outcome.IGNORED}


RULES = [
    f"tcp-request connection {verb} {when} {{ src {network} }}"
    for verb, when, network in product(("accept", "reject"), ("if", "unless"), (A, "10.1.0.0/16", B))
] + ["tcp-request connection accept", "tcp-request connection reject"]


def admits(rules: tuple[str, ...], client: str) -> bool:
    """Tell whether HAProxy lets a client in: the first rule that fits decides."""
    for rule in rules:
        words = rule.split()
        fits = len(words) == 3 or (ip_address(client) in ip_network(words[6])) is (words[3] == "if")
        if fits:
            return words[2] == "accept"
    return True


@pytest.mark.parametrize("first", RULES)
def test_whatever_is_not_refused_means_the_same(first: str):
    """Of all pairs of rules, each client is let in by the lists exactly when HAProxy would let it in."""
    for second in RULES:
        found = frontend(first, second)
        if found.refused:
            continue
        section = found.frontend()
        for client in ("10.1.0.1", "10.2.0.1", "192.0.2.1", "203.0.113.1"):
            inside = [
                any(ip_address(client) in ip_network(each) for each in some)
                for some in (section.allow, section.deny)
            ]
            ours = (inside[0] or not section.allow) and not inside[1]
            assert ours is admits((first, second), client), (first, second, client)
