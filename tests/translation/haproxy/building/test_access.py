"""Who may connect: rules by network become `allow` and `deny` where these say exactly the same."""

from ipaddress import ip_address, ip_network
from itertools import product

import pytest
from support.translation.haproxy_files import TIMES, Read, backend, frontend, read

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
        ([f"acl lan src -m ip -- {A}", "tcp-request session reject unless lan"], [A], []),
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
        (
            ["acl a src 10.0.0.0/8", "acl b src 192.0.2.0/24", "tcp-request connection reject if !a !b"],
            [A, B],
            [],
        ),
        (["tcp-request connection reject unless { src 10.0.0.1/8 }"], [A], []),
        (["tcp-request connection reject if { src ::/0 }"], [], ["::/0", "0.0.0.0/0"]),
        (["tcp-request connection reject if { src ::/80 ::/81 }"], [], ["::/80", "::/81", "0.0.0.0/0"]),
        (["tcp-request connection reject if { src 10.0.0.0/255.0.0.0 }"], [], [A]),
        (["tcp-request connection reject unless { src -n -i -m ip 10.0.0.0/8 }"], [A], []),
        ([f"tcp-request content reject unless {{ src {A} }}"], [A], []),
        ([f"tcp-request content reject if {{ src {A} }}", "tcp-request content accept if HTTP"], [], [A]),
        ([f"tcp-request content accept if {{ src {A} }}", "tcp-request content reject"], [A], []),
        ([f"tcp-request connection silent-drop if {{ src {A} }}"], [], [A]),
        (
            [
                f"tcp-request connection reject unless {{ src {A} }}",
                "tcp-request connection reject if { src 10.0.0.66 }",
            ],
            [A],
            ["10.0.0.66/32"],
        ),
        ([f"tcp-request connection reject unless {{ src {A} }}", "tcp-request connection accept"], [A], []),
        ([f"tcp-request connection accept unless {{ src {A} }}", "tcp-request connection reject"], [], [A]),
        (
            [
                f"tcp-request connection reject unless {{ src {A} }}",
                "tcp-request content reject if { src 10.0.0.66 }",
            ],
            [A],
            ["10.0.0.66/32"],
        ),
        (
            [
                f"tcp-request connection reject unless {{ src {A} {B} }}",
                "tcp-request session reject unless { src 10.1.0.0/16 192.0.0.0/16 }",
            ],
            [B, "10.1.0.0/16"],
            [],
        ),
    ],
)
def test_what_lists_can_say(lines: list[str], allow: list[str], deny: list[str]):
    """The lists are those that let in the same clients."""
    assert lists(*lines) == (allow, deny)


def test_a_drop_that_is_not_silent():
    """Nobody gets through, and a client learns so."""
    found = frontend(f"tcp-request connection silent-drop if {{ src {A} }}")
    assert found.outcome("tcp-request") is Outcome.CHANGED


def test_an_accept_that_changes_nothing():
    """Nobody is rejected behind it: it is ignored."""
    found = frontend(f"tcp-request connection accept if {{ src {A} }}")
    assert found.outcome("tcp-request") is Outcome.IGNORED


@pytest.mark.parametrize(
    ("lines", "refused"),
    [
        (["tcp-request connection reject"], "no client could connect"),
        (
            ["tcp-request connection accept", "tcp-request connection reject"],
            "no connection reaches this rule",
        ),
        (["tcp-request connection reject if { src_port 1 }"], "write client networks"),
        (["tcp-request connection reject if { src }"], "`src` needs networks"),
        (["tcp-request connection reject if { src -f /etc/x }"], "`/etc/x` cannot be read: No such file"),
        (["tcp-request connection accept if { src -f /etc/x }"], "`/etc/x` cannot be read: No such file"),
        (["tcp-request connection reject if { src -f lists/x }"], "write its absolute path"),
        (["tcp-request connection reject if { src -f }"], "write its absolute path"),
        (["tcp-request connection reject if { src -m str 10.0.0.1 }"], "`-m` is not supported"),
        (["tcp-request connection reject if { src -u 7 10.0.0.1 }"], "`-u` is not supported"),
        (["tcp-request connection reject if { src 10.0.0.0/0.0.0.255 }"], "the mask is not a network mask"),
        (["tcp-request connection reject if { src 10.0.0.0/x }"], "is not a network"),
        (["tcp-request connection reject if { src node-1 }"], "is not a network"),
        (["tcp-request connection reject if unknown"], "`unknown` is not supported"),
        (["tcp-request connection reject if"], "`if` or `unless` and a condition"),
        (["tcp-request connection reject when x"], "`if` or `unless` and a condition"),
        (["tcp-request connection reject if or"], "a condition is missing"),
        (
            [f"tcp-request connection reject if {{ src {A} }} {{ src {B} }}"],
            "cannot require several conditions",
        ),
        ([f"tcp-request connection reject if {{ src {A} }} or !{{ src {B} }}"], "one `acl` with all"),
        ([f"tcp-request connection reject if !{{ src {A} }} or !{{ src {B} }}"], "one `acl` with all"),
        ([f"tcp-request connection reject if {{ src {A} }} or {{ src {B} }} lan"], "one `acl` with all"),
        (
            [
                f"tcp-request connection accept if !{{ src {A} }}",
                f"tcp-request connection reject if !{{ src {B} }}",
            ],
            "write the clients to reject",
        ),
        (
            [f"tcp-request connection reject if !{{ src {A} }}", "tcp-request connection reject"],
            "an earlier rule sets who may connect",
        ),
        (
            ["tcp-request content accept if HTTP", "tcp-request content reject"],
            "`tcp-request content accept if HTTP` accepts, a rule that is not supported",
        ),
        (
            [
                f"tcp-request connection reject if !{{ src {A} }}",
                f"tcp-request content reject if !{{ src {B} }}",
            ],
            "other rules reject the clients accepted here",
        ),
        (
            [
                f"tcp-request connection accept if {{ src {A} }}",
                "tcp-request connection reject if { src 10.1.0.0/16 }",
            ],
            "overlaps with networks accepted before",
        ),
        (["tcp-request connection expect-proxy layer4"], "`expect-proxy` is not supported"),
        (["acl x"], "a name and a criterion"),
        (["tcp-request content reject if { req_ssl_hello_type 1 }"], "write client networks"),
        (["tcp-request connection accept when x"], "`if` or `unless` and a condition"),
        (["tcp-request content set-var(x) src"], "data from clients is not inspected"),
        (["use_backend c if { src 10.0.0.1 } { req.ssl_sni -i x }"], "cannot be in one rule"),
    ],
)
def test_what_lists_cannot_say(lines: list[str], refused: str):
    """It is refused, with what to write, and nobody may connect: the frontend is left out."""
    found = frontend(*lines)

    assert refused in found.refused[0]
    assert found.config.api is None


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
            assert found.config.api is None
            continue
        section = found.frontend()
        for client in ("10.1.0.1", "10.2.0.1", "192.0.2.1", "203.0.113.1"):
            inside = [
                any(ip_address(client) in ip_network(each) for each in some)
                for some in (section.allow, section.deny)
            ]
            ours = (inside[0] or not section.allow) and not inside[1]
            assert ours is admits((first, second), client), (first, second, client)


LEVELS = ("connection", "session", "content", "backend")


@pytest.mark.parametrize("levels", list(product(LEVELS, LEVELS)), ids="-".join)
def test_each_level_is_passed_by_itself(levels: tuple[str, str]):
    """An `accept` ends the rules of its own level only, as with HAProxy; a backend has a level of its own."""
    rules = [each.removeprefix("tcp-request connection ") for each in RULES if B not in each]
    for first, second in product(rules, rules):
        found = placed((levels[0], first), (levels[1], second))
        if found.refused:
            assert found.config.api is None
            continue
        section = found.frontend()
        for client in ("10.1.0.1", "10.2.0.1", "192.0.2.1", "203.0.113.1"):
            inside = [
                any(ip_address(client) in ip_network(each) for each in some)
                for some in (section.allow, section.deny)
            ]
            ours = (inside[0] or not section.allow) and not inside[1]
            by_level = {
                level: tuple(
                    f"a b {rule}" for at, rule in zip(levels, (first, second), strict=True) if at == level
                )
                for level in levels
            }
            assert ours is all(admits(each, client) for each in by_level.values()), (first, second, client)


def placed(*rules: tuple[str, str]) -> Read:
    """Return what a frontend and its backend become with rules at some levels."""
    lines = {
        kind: "".join(
            f"  tcp-request {'content' if level == 'backend' else level} {rule}\n"
            for level, rule in rules
            if (level == "backend") is (kind == "backend")
        )
        for kind in ("frontend", "backend")
    }
    return read(
        f"{TIMES}frontend f\n  bind *:6443\n{lines['frontend']}  default_backend b\n"
        f"backend b\n{lines['backend']}  server s 10.0.0.1:6443 check\n"
    )


def test_networks_of_a_file():
    """`src -f FILE` has one network on each line, without comments and empty lines, as HAProxy reads it."""
    content = b"# nodes\n\n  10.0.0.0/8\n192.0.2.7/24\r\n2001:db8::1\n"
    rule = "tcp-request connection reject unless { src -f /etc/lan -- 203.0.113.1 }"
    found = frontend(rule, rule.replace("connection", "content"), files={"/etc/lan": content})

    assert found.refused == []
    assert found.frontend().allow == ("10.0.0.0/8", "192.0.2.0/24", "2001:db8::1/128", "203.0.113.1/32")


@pytest.mark.parametrize(
    ("content", "refused"),
    [
        (b"10.0.0.0/8\nx\n", "/etc/lan:2: "),
        (b"10.0.0.0/8 # office\n", "/etc/lan:1: "),
        (b"\xff\n", "the file `/etc/lan` is not UTF-8"),
        (b"# nobody\n", "`src` needs networks"),
    ],
)
def test_a_file_that_is_none_of_networks(content: bytes, refused: str):
    """It is refused with its line, wherever it is named, and the frontend is left out."""
    found = frontend(
        *["tcp-request connection reject if { src -f /etc/lan }"] * 2, files={"/etc/lan": content}
    )

    assert [refused in each for each in found.refused] == [True, True]
    assert found.config.api is None


def test_networks_of_a_configuration_have_a_limit():
    """However often a long list is named, the work has an end."""
    content = b"".join(b"10.%d.%d.0/24\n" % (at // 250, at % 250) for at in range(20_000))
    rules = ["tcp-request connection reject if { src -f /etc/lan }"] * 60
    found = frontend(*rules, files={"/etc/lan": content})

    assert "more than 50000 networks" in found.refused[0]
    assert len(found.refused) == 57


def test_rules_of_a_backend_hold_for_all_that_forward_to_it():
    """Each frontend has them, beside its own; a `listen` has its own once."""
    found = read(
        f"{TIMES}frontend a\n  bind *:1\n  default_backend b\nfrontend c\n  bind *:2\n  default_backend b\n"
        f"backend b\n  acl lan src {A}\n  tcp-request content reject if !lan\n  server s 10.0.0.1:1\n"
        f"listen l\n  bind *:3\n  tcp-request content reject if {{ src {B} }}\n  server s 10.0.0.1:1\n"
    )

    assert found.refused == []
    assert (found.frontend("a").allow, found.frontend("c").allow) == ((A,), (A,))
    assert found.frontend("l").deny == (B,)
    assert found.outcome("acl lan") is Outcome.KEPT


def test_rules_that_nobody_comes_to():
    """They are ignored and not kept, with a word."""
    found = read(f"{TIMES}backend b\n  tcp-request content reject if {{ src {A} }}\n  server s 10.0.0.1:1\n")

    assert "no client reaches this rule" in str(found.line("tcp-request").reason)


@pytest.mark.parametrize(
    "line",
    [
        "tcp-request content reject if { req.len gt 9 }",
        "tcp-request connection track-sc0 src",
        "tcp-request content set-var(sess.x) src",
        "tcp-requset connection reject if { src 10.0.0.1 }",
        'tcp-request connection reject unless { src "$LAN" }',
        'tcp-request connection reject unless { src "10.0.0.0/8 }',
        "use_backend c if { src 10.0.0.1 }",
        "http-request deny if { src 10.0.0.1 }",
        "http-request auth unless { http_auth(L) }",
        "block if x",
        "acl lan",
        "rate-limit sessions 10",
        "monitor-net 10.0.0.0/8",
        ".if version_atleast(2.4)\n  tcp-request connection reject\n.endif",
    ],
)
def test_what_is_refused_and_may_keep_clients_out_leaves_the_frontend_out(line: str):
    """Nothing that the line may have protected is served, and all lines of the section have their word."""
    for found in (
        frontend(line),
        read(f"{TIMES}listen f\n  bind *:1\n  {line}\n  server s 10.0.0.1:1\n"),
    ):
        assert len(found.refused) == 1
        assert found.config.api is None
        assert found.outcome("bind") is Outcome.IGNORED


@pytest.mark.parametrize(
    "line",
    [
        "tcp-request connection reject if { src 10.0.0.1 }",
        "tcp-request content reject if { req.len gt 9 }",
        "http-request deny if { src 10.0.0.1 }",
    ],
)
def test_what_is_refused_in_a_backend_leaves_its_frontends_out(line: str):
    """A rule of a connection is fatal there with HAProxy, too: it is not ignored."""
    found = backend(line)

    assert len(found.refused) == 1
    assert found.config.api is None


def test_all_that_is_refused_of_a_frontend_is_told_at_once():
    """Also where one line is enough to leave it out."""
    found = frontend(
        "tcp-request connection track-sc0 src", "tcp-request connection reject if { sc0_conn_rate gt 10 }"
    )

    assert len(found.refused) == 2


def test_unknown_defaults_may_keep_clients_out():
    """A section that names them is left out; it is not known what they say."""
    found = read(f"{TIMES}listen l from nowhere\n  bind *:1\n  server s 10.0.0.1:1\n")

    assert len(found.refused) == 1
    assert found.config.api is None


@pytest.mark.parametrize(
    "line",
    ["tcp-request connection reject", "tcp-request content reject", "http-request deny", 'acl lan src "$X"'],
)
def test_what_is_refused_in_defaults_leaves_out_all_that_has_them(line: str):
    """Sections with other defaults are served."""
    body = "  bind *:{0}\n  server s 10.0.0.1:{0}\n"
    found = read(
        f"defaults guarded\n  {line}\n{TIMES.replace('defaults', 'defaults open')}"
        f"listen a from guarded\n{body.format(1)}defaults more from guarded\nlisten b\n{body.format(2)}"
        f"listen c from open\n{body.format(3)}"
    )

    assert len(found.refused) == 1
    assert found.config.api is not None
    assert list(found.config.api.frontends) == ["c"]
