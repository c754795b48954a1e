"""`use_backend` by network, server name and port: what leads where, and what is refused with its frontend."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.translation.haproxy_files import TIMES, Read, read

from appliance.core.balancing.client_routes import ClientRoutes
from appliance.model.snapshot.frontends import ClientRoute, SniRoute
from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure

WAIT = "tcp-request inspect-delay 3s", "tcp-request content accept if { req.ssl_hello_type 1 }"
BACKENDS = "".join(f"backend {name}\n  server s 10.0.0.1:{port}\n" for port, name in enumerate("bcd", 1))


def routed(
    *lines: str,
    binds: tuple[int, ...] = (1,),
    default: str = "default_backend d",
    files: dict[str, bytes] | None = None,
) -> Read:
    """Return what a frontend `f` with these lines becomes, with backends `b`, `c` and `d` behind it."""
    said = (*(f"bind *:{port}" for port in binds), *lines, default)
    text = f"{TIMES}frontend f\n" + "".join(f"  {each}\n" for each in said if each) + BACKENDS
    return read(text, files=files)


def sni(*lines: str) -> tuple[SniRoute, ...]:
    """Return the routes of a frontend with these lines, none of which is refused."""
    found = routed(*WAIT, *lines)
    assert found.refused == []
    assert found.frontend().pool == "d"
    return found.frontend().sni


@pytest.mark.parametrize(
    ("lines", "routes"),
    [
        (["use_backend b if { req.ssl_sni -i X.y z.y }"], [("x.y", "z.y")]),
        (["use_backend b if { req_ssl_sni -m str -i -- x.y }"], [("x.y",)]),
        (["use_backend b if { req.ssl_sni,lower x.y }"], [("x.y",)]),
        (["use_backend b if { req.ssl_sni -i -m end .x.y }"], [("*.x.y",)]),
        (["use_backend b if { req.ssl_sni -i -m end x.y }"], [r"x\.y$"]),
        (["use_backend b if { req.ssl_sni -i -m beg x. }"], [r"^x\."]),
        (["use_backend b if { req.ssl_sni -i -m sub -n x-y }"], [r"x\-y"]),
        (["use_backend b if { req.ssl_sni -i -m reg ^x[0-9]+$ }"], ["^x[0-9]+$"]),
        (["use_backend b if { req.ssl_sni -m found }"], ["."]),
        (["acl n req.ssl_sni -i x", "acl n req.ssl_sni -i -m beg y", "use_backend b if n"], [("x",), "^y"]),
        (["acl t req.ssl_hello_type 1", "use_backend b if t { req.ssl_sni -i x }"], [("x",)]),
        (["use_backend b if { req.ssl_sni -i x } or { req.ssl_sni -i y }"], [("x", "y")]),
        (["use_backend b if { dst_port 2 } { req.ssl_sni -i x } || { req.ssl_sni -i y }"], [("y",)]),
        (["use_backend b if { dst_port 2 } { req.ssl_sni -i x }"], []),
        (["use_backend b if !{ dst_port 2 } { req.ssl_sni -i x }"], [("x",)]),
    ],
)
def test_names(lines: list[str], routes: list[tuple[str, ...] | str]):
    """Each way to ask for a name is names or an expression that ask the same."""
    assert sni(*lines) == tuple(
        SniRoute(pool="b", regex=each) if isinstance(each, str) else SniRoute(pool="b", names=each)
        for each in routes
    )


A, B = "10.0.0.0/8", "192.0.2.0/24"
OFFICE = {"/office": b"# office\n10.0.0.0/8\n2001:db8::/32\n"}


@pytest.mark.parametrize(
    ("lines", "clients", "pool"),
    [
        ([f"use_backend b if {{ src {A} }}"], [("b", (A,))], "d"),
        ([f"use_backend b if {{ src {A} {B} 2001:db8::/32 }}"], [("b", (A, B, "2001:db8::/32"))], "d"),
        ([f"acl n src {A}", f"acl n src {B}", "use_backend b if n"], [("b", (A, B))], "d"),
        (["use_backend b if { src -f /office }"], [("b", (A, "2001:db8::/32"))], "d"),
        (["acl n src -f /office", "use_backend b if n"], [("b", (A, "2001:db8::/32"))], "d"),
        ([f"use_backend b if {{ src {A} }} or {{ src {A} {B} }}"], [("b", (A, B))], "d"),
        (["use_backend b if { src ::ffff:10.0.0.0/104 }"], [("b", (A,))], "d"),
        (["use_backend b if { src ::/0 }"], [("b", ("::/0", "0.0.0.0/0"))], "d"),
        (["use_backend b if { src 8000::/1 ::/81 }"], [("b", ("8000::/1", "::/81"))], "d"),
        ([f"use_backend b if !{{ src {A} }}"], [("d", (A,))], "b"),
        ([f"use_backend b unless {{ src {A} }} or {{ src {B} }}"], [("d", (A, B))], "b"),
        ([f"use_backend b if !{{ src {A} }} !{{ src {B} }}"], [("d", (A, B))], "b"),
        ([f"use_backend b unless !{{ src {A} }} !{{ src {B} }}"], [("b", (A, B))], "d"),
        ([f"use_backend b if !{{ src {A} }}", "use_backend c"], [("c", (A,))], "b"),
        ([f"use_backend b unless {{ dst_port 2 }} {{ src {A} }}"], [], "b"),
        ([f"use_backend b if {{ dst_port 2 }} {{ src {A} }}"], [], "d"),
        ([f"use_backend b if {{ dst_port 1 }} {{ src {A} }}"], [("b", (A,))], "d"),
        ([f"use_backend b if !{{ src {A} }} or {{ dst_port 1 }}"], [], "b"),
        (
            [f"use_backend b if {{ src {B} }}", f"use_backend c if !{{ src {A} }}"],
            [("b", (B,)), ("d", (A,))],
            "c",
        ),
        (
            [f"use_backend b if !{{ src {A} }}", f"use_backend c if {{ src 10.1.0.0/16 {B} }}"],
            [("c", ("10.1.0.0/16",)), ("d", (A,))],
            "b",
        ),
        (
            [f"use_backend b if !{{ src {A} }}", f"use_backend c if !{{ src 10.1.0.0/16 {B} }}"],
            [("d", ("10.1.0.0/16",)), ("c", (A,))],
            "b",
        ),
        ([f"use_backend b if !{{ src {A} }}", f"use_backend c if !{{ src {B} }}"], [("c", (A,))], "b"),
    ],
)
def test_networks(lines: list[str], clients: list[tuple[str, tuple[str, ...]]], pool: str):
    """Each way to ask for networks, or for all but some, is a list whose first match leads alike."""
    found = routed(*lines, files=OFFICE)
    assert found.refused == []
    routes = tuple(ClientRoute(pool=name, networks=networks) for name, networks in clients)
    assert (found.frontend().clients, found.frontend().sni, found.frontend().pool) == (routes, (), pool)


def test_networks_before_names():
    """In this order both are said; nobody is waited for because of networks alone."""
    rule = f"use_backend b if {{ src {A} }}"
    both = routed(*WAIT, rule, "use_backend c if { req.ssl_sni -i x }").frontend()
    assert both.clients == (ClientRoute(pool="b", networks=(A,)),)
    assert both.sni == (SniRoute(pool="c", names=("x",)),)
    alone = routed(WAIT[0], rule)
    assert (alone.outcome(rule), alone.outcome("tcp-request")) == (Outcome.KEPT, Outcome.IGNORED)
    assert "hello" not in alone.frontend().timeouts.model_fields_set


def test_networks_that_nobody_comes_from():
    """What an earlier rule has is left out; a rule of which nothing is left is ignored."""
    found = routed(
        f"acl later src {B} 10.1.0.0/16",
        f"use_backend b if {{ src {A} }}",
        "use_backend c if later",
        "use_backend c if { src 10.2.0.0/16 }",
    )
    assert found.frontend().clients == (
        ClientRoute(pool="b", networks=(A,)),
        ClientRoute(pool="c", networks=(B,)),
    )
    assert found.outcome("use_backend c if {") is Outcome.IGNORED
    assert found.outcome("use_backend c if later") is found.outcome("acl later") is Outcome.KEPT


def test_networks_without_a_default():
    """Clients of no rule are closed, be they all but some or these some."""
    others = routed(f"use_backend b if {{ src {A} }}", default="")
    assert (others.frontend().pool, others.pool("f-nowhere").usable) == ("f-nowhere", {})
    some = routed(f"use_backend b unless {{ src {A} }}", default="")
    assert some.frontend().clients == (ClientRoute(pool="f-nowhere", networks=(A,)),)
    assert (some.frontend().pool, some.pool("f-nowhere").usable) == ("b", {})
    assert "are closed" in str(some.line("use_backend").reason)


def test_networks_by_port():
    """Ports with different networks are frontends of their own."""
    found = routed(f"use_backend b if {{ src {A} }} {{ dst_port 2 }}", binds=(1, 2, 3))
    assert found.frontend().clients == ()
    assert [each.port for each in found.frontend().bind] == [1, 3]
    assert found.frontend("f-2").clients == (ClientRoute(pool="b", networks=(A,)),)


_NETWORKS = st.lists(
    st.sampled_from([A, "10.1.0.0/16", "10.1.2.3", B, "0.0.0.0/0", "2001:db8::/32", "::/0"]),
    min_size=1,
    max_size=3,
)
_CLIENTS = ("10.1.2.3", "10.1.9.9", "10.9.9.9", "192.0.2.1", "203.0.113.1", "2001:db8::1", "2001:db9::1")


def _is_in(client: str, networks: list[str]) -> bool:
    """Say it as HAProxy does, which compares the mapped form of an IPv4 address with networks of IPv6."""
    address = ip_address(client)
    forms = (address, ip_address(f"::ffff:{client}")) if address.version == 4 else (address,)
    return any(form in ip_network(each) for form in forms for each in networks)


@given(
    st.lists(st.tuples(st.sampled_from("bcd"), st.sampled_from(["if", "unless"]), _NETWORKS), max_size=5),
    st.booleans(),
)
def test_each_client_is_led_as_in_the_file(rules: list[tuple[str, str, list[str]]], has_default: bool):  # noqa: FBT001  # drawn
    """The list and the pool lead every client where the first rule that holds leads it."""
    found = routed(
        *(f"use_backend {name} {word} {{ src {' '.join(networks)} }}" for name, word, networks in rules),
        default="default_backend d" if has_default else "",
    )
    if not rules and not has_default:
        return
    assert found.refused == []
    made = found.frontend()
    for client in _CLIENTS:
        wanted = next(
            (name for name, word, networks in rules if _is_in(client, networks) is (word == "if")),
            "d" if has_default else "f-nowhere",
        )
        packed = ip_address(client).packed
        assert (ClientRoutes(made.clients).pool(packed) or made.pool) == wanted, (client, made.clients)


def test_the_order_of_the_file():
    """Rules are tried in their order, up to the first that always holds; nobody comes to those behind it."""
    found = routed(
        *WAIT,
        "use_backend c if { req.ssl_sni -i x }",
        "use_backend b if { req.ssl_sni -i -m end .y }",
        "use_backend c",
        "use_backend b if { req.ssl_sni -i z }",
    )
    assert found.frontend().sni == (SniRoute(names=("x",), pool="c"), SniRoute(names=("*.y",), pool="b"))
    assert found.frontend().pool == "c"
    assert found.outcome("use_backend b if { req.ssl_sni -i z") is Outcome.IGNORED
    assert found.outcome("default_backend") is Outcome.IGNORED


def test_how_long_a_name_is_waited_for():
    """The time of `inspect-delay` is ours; where HAProxy does not wait, the report says that we do."""
    rule = "use_backend b if { req.ssl_sni -i x }"
    waits = routed(*WAIT, rule)
    assert waits.frontend().timeouts.hello == 3.0
    assert waits.outcome("tcp-request inspect-delay") is Outcome.KEPT
    assert waits.outcome("use_backend") is Outcome.KEPT
    for lines in (WAIT[1:], WAIT[:1], ()):
        assert "waits for the name" in str(routed(*lines, rule).line("use_backend").reason)
    assert routed(WAIT[0]).outcome("tcp-request inspect-delay") is Outcome.IGNORED
    assert routed("tcp-request inspect-delay x", rule).config.api is None


def test_case_is_told():
    """Where HAProxy tells `A` from `a`, and we do not, the report says so."""
    assert "case in server names is ignored" in str(
        routed(*WAIT, "use_backend b if { req.ssl_sni x }").line("use_b").reason
    )
    found = routed(*WAIT, "use_backend b if { req.ssl_sni -m found }")
    assert found.outcome("use_backend") is Outcome.KEPT


def test_without_a_default():
    """Whom no rule fits is closed, as with HAProxy: it is led to a pool without servers."""
    found = routed(*WAIT, "use_backend b if { req.ssl_sni -i x }", default="")
    assert found.frontend().pool == "f-nowhere"
    assert found.pool("f-nowhere").servers.by_name == {}
    assert "are closed" in str(found.line("use_backend").reason)
    two = routed(*WAIT, "use_backend b if { dst_port 1 } { req.ssl_sni -i x }", binds=(1, 2), default="")
    assert two.config.api is None, "at port 2 every connection would be closed"
    both = routed(
        *WAIT,
        "use_backend b if { dst_port 1 } { req.ssl_sni -i x }",
        "use_backend c if { req.ssl_sni -i y }",
        binds=(1, 2),
        default="",
    )
    assert both.frontend().pool == both.frontend("f-2").pool == "f-nowhere"


def test_a_default_that_rejects():
    """A backend that only rejects closes connections, as a pool without servers does."""
    closed = "backend z\n  tcp-request content reject\n"
    front = "frontend f\n  bind *:1\n  tcp-request content reject if { src 192.0.2.1 }\n"
    names = "".join(f"  {each}\n" for each in (*WAIT, "use_backend b if { req.ssl_sni -i x }"))
    found = read(f"{TIMES}{front}{names}  default_backend z\n{closed}{BACKENDS}")
    assert found.refused == []
    assert (found.frontend().pool, found.frontend().deny) == ("z", ("192.0.2.1/32",))
    assert found.pool("z").servers.by_name == {}
    assert "are closed, as this pool has no servers" in str(found.lines("tcp-request content")[-1].reason)
    alone = read(f"{TIMES}{front}  default_backend z\n{closed}")
    assert (alone.refused, alone.frontend().deny, alone.pool("z").usable) == ([], ("192.0.2.1/32",), {})


@pytest.mark.parametrize(
    "lines",
    [
        ["tcp-request content reject", "server s 10.0.0.1:9"],
        ["tcp-request content reject", "server-template s 2 x.y:9"],
        ["tcp-request content reject if { src 10.0.0.0/8 }"],
        ["tcp-request content accept if { src 10.0.0.0/8 }", "tcp-request content reject"],
    ],
)
def test_a_default_that_does_more_than_to_reject(lines: list[str]):
    """With servers, or with rules, who may connect is not the same for all backends."""
    names = "".join(f"  {each}\n" for each in (*WAIT, "use_backend b if { req.ssl_sni -i x }"))
    rest = "".join(f"  {each}\n" for each in lines)
    found = read(f"{TIMES}frontend f\n  bind *:1\n{names}  default_backend z\nbackend z\n{rest}{BACKENDS}")
    assert found.refused
    assert found.config.api is None


@pytest.mark.parametrize(
    ("condition", "ports"),
    [
        ("if { dst_port 2 }", {2}),
        ("if { dst_port eq 2 3 }", {2, 3}),
        ("if { dst_port 2:3 }", {2, 3}),
        ("if { dst_port ge 2 }", {2, 3, 4}),
        ("if { dst_port gt 2 }", {3, 4}),
        ("if { dst_port le 2 }", {1, 2}),
        ("if { dst_port lt 2 }", {1}),
        ("if !{ dst_port 2 }", {1, 3, 4}),
        ("unless { dst_port 2 }", {1, 3, 4}),
        ("if { dst_port ge 2 } { dst_port le 3 }", {2, 3}),
        ("if { dst_port 1 } || { dst_port 3 }", {1, 3}),
        ("unless { dst_port 9 }", {1, 2, 3, 4}),
        ("if { dst_port 9 }", set()),
    ],
)
def test_ports(condition: str, ports: set[int]):
    """Ports that are led alike are one frontend; the others become one of their own, which is told."""
    found = routed(f"use_backend b {condition}", binds=(1, 2, 3, 4))
    assert found.refused == []
    assert found.config.api is not None
    made = {bind.port: each.pool for each in found.config.api.frontends.values() for bind in each.bind}
    assert made == {port: "b" if port in ports else "d" for port in (1, 2, 3, 4)}
    names = list(found.config.api.frontends)
    assert names[0] == "f"
    assert len(names) == len(set(made.values()))
    told = [each for each in found.lines("bind") if each.outcome is Outcome.CHANGED]
    assert len(told) == len(names) - 1


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (
            ["use_backend b if { src 10.0.0.1 } { req.ssl_sni -i x }"],
            "`src` and a server name cannot be in one",
        ),
        (["use_backend b if { src 10.0.0.1 } { req.ssl_hello_type 1 }"], "cannot be in one rule"),
        (["use_backend b if { src 10.0.0.1 } or { req.ssl_sni -i x }"], "cannot be in one rule"),
        (
            ["use_backend b if { src 10.0.0.1 } { src 10.0.0.0/8 }"],
            "two client networks that must both match",
        ),
        (
            ["use_backend b if { src 10.0.0.0/8 } !{ src 10.0.0.1 }"],
            "two client networks that must both match",
        ),
        (["use_backend b if { src 10.0.0.1 } or !{ src 10.0.0.2 }"], "joined by `or` cannot be negated"),
        (["use_backend b if { src 10.0.0.1 } { path /x }"], "connections are not routed by `path /x`"),
        (["use_backend b if { src }"], "`src` needs networks"),
        (["use_backend b if { src -m str x }"], "`-m` is not supported"),
        (["use_backend b if { src -f /none }"], "cannot be read"),
        (["use_backend b if { src 10.0.0.1/99 }"], "10.0.0.1/99"),
        (["use_backend b if { src,map_ip(/x) y }"], "use client networks (`src`)"),
        (
            ["use_backend b if { req.ssl_sni -i x }", "use_backend c if { src 10.0.0.1 }"],
            "client networks are compared before server names here",
        ),
        (
            ["use_backend b if !{ src 10.0.0.1 }", "use_backend c if { req.ssl_sni -i x }"],
            "client networks are compared before server names here",
        ),
        (["use_backend b if { path /x }"], "connections are not routed by `path /x`"),
        (["use_backend b if { req.ssl_hello_type 2 }"], "connections are not routed by"),
        (["use_backend b if { req.ssl_hello_type 1 }"], "a rule cannot match a ClientHello alone"),
        (["use_backend b if"], "`unless` and a condition"),
        (["use_backend b when x"], "`unless` and a condition"),
        (["use_backend b if { }"], "connections are not routed by"),
        (["use_backend b if unknown"], "connections are not routed by `unknown`"),
        (["use_backend b unless { req.ssl_sni -i x }"], "`unless` with a server name"),
        (
            ["use_backend b if !{ req.ssl_sni -i x }"],
            "only ports and client networks can be negated, and criteria cannot be mixed",
        ),
        (["use_backend b if { req.ssl_sni -i x } { req.ssl_sni -i y }"], "two server names"),
        (
            ["acl n req.ssl_sni -i x", "acl n dst_port 2", "use_backend b if n"],
            "only ports and client networks can be negated, and criteria cannot be mixed",
        ),
        (["acl n req.ssl_sni -i x", "acl n src 10.0.0.1", "use_backend b if n"], "criteria cannot be mixed"),
        (["use_backend b if { req.ssl_sni -i }"], "needs names"),
        (["use_backend b if { req.ssl_sni -i -m dom x }"], "`-m dom` is not supported for server names"),
        (["use_backend b if { req.ssl_sni -f /names }"], "`-f /names` is not supported for server names"),
        (["use_backend b if { req.ssl_sni -m }"], "`-m` is not supported for server names"),
        (["use_backend b if { req.ssl_sni -i x/y }"], "is not the name of a server"),
        (["use_backend b if { req.ssl_sni -i -m beg ä }"], "cannot be part of a server name"),
        (["use_backend b if { req.ssl_sni -i -m reg (x }"], "a `(` without its `)`"),
        (["use_backend b if { dst_port }"], "needs ports"),
        (["use_backend b if { dst_port http }"], "is not a port"),
        (["use_backend b if { dst_port ge 1:2 }"], "is not a port"),
        (["use_backend bb if { dst_port 1 }"], "there is no backend `bb`: did you mean `b`?"),
        (["tcp-request content reject", "use_backend b if { req.ssl_sni -i x }"], "no client could connect"),
        (
            ["mode http", "stats enable", "use_backend b if { path / }"],
            "HTTP requests are not read here",
        ),
    ],
)
def test_what_is_refused(lines: list[str], why: str):
    """A rule that leads clients away and is not understood leaves its frontend out."""
    found = routed(*lines)
    assert why in " ".join(found.refused)
    assert found.config.api is None
    assert found.outcome("bind") is Outcome.IGNORED


def test_rules_of_backends():
    """Who may connect is said of a frontend: backends that differ in it are refused."""
    rule = "  tcp-request content reject if { src 10.0.0.66 }\n"
    for owners, deny in (("b", None), ("bd", ("10.0.0.66/32",))):
        text = (
            f"{TIMES}frontend f\n  bind *:1\n  use_backend b if {{ req.ssl_sni -i x }}\n  default_backend d\n"
        )
        for name in "bd":
            text += f"backend {name}\n{rule if name in owners else ''}  server s 10.0.0.1:1\n"
        found = read(text)
        if deny is None:
            assert "give them separate frontends" in found.refused[0]
            assert found.config.api is None
        else:
            assert found.frontend().deny == deny


def test_what_cannot_be_served():
    """A backend that is led to and cannot be served, or obeys rules of HTTP, leaves the frontend out."""
    for line in ("mode http", "http-request deny", "tcp-request content reject if { req.len 3 }"):
        front = "frontend f\n  bind *:1\n  bind *:2\n  use_backend b if { dst_port 2 }\n  default_backend d\n"
        found = read(
            f"{TIMES}{front}backend b\n  {line}\n  server s 10.0.0.1:1\nbackend d\n  server s 10.0.0.1:1\n"
        )
        assert found.refused
        assert found.config.api is None


def test_a_default_that_is_not_there():
    """It is refused in either mode, unless a rule takes all before it."""
    for lines in (("mode http", "stats enable"), (), ("use_backend b if { req.ssl_sni -i x }",)):
        found = routed(*lines, default="default_backend q")
        assert "there is no backend `q`" in " ".join(found.refused)
    assert routed("use_backend b", default="default_backend q").refused == []


def test_a_default_that_a_rule_names_too():
    """It is kept if clients of any port come to it, whatever those of another port do."""
    for port in (1, 2):
        found = routed(f"use_backend d if {{ dst_port {port} }}", binds=(1, 2))
        assert found.outcome("default_backend") is Outcome.KEPT
        assert len(found.frontend().bind) == 2


def test_a_listen_is_its_own_default():
    """Clients whom no rule fits have the servers of the section itself."""
    found = read(
        f"{TIMES}listen f\n  bind *:1\n  {WAIT[0]}\n  {WAIT[1]}\n  use_backend b if {{ req.ssl_sni -i x }}\n"
        f"  server s 10.0.0.9:1\n{BACKENDS}"
    )
    assert (found.frontend().pool, found.frontend().sni[0].pool) == ("f", "b")


_ATOMS = st.sampled_from(
    [
        "{ dst_port 1 }",
        "{ dst_port ge 2 }",
        "{ req.ssl_sni -i x }",
        "{ req.ssl_hello_type 1 }",
        "{ src 10.0.0.1 }",
        "n",
    ]
)
_CONDITIONS = st.lists(
    st.tuples(st.sampled_from(["", "", "!"]), _ATOMS, st.sampled_from(["", "or"])), min_size=1, max_size=4
).map(lambda parts: " ".join(" ".join(part) for part in parts))


@given(
    st.lists(
        st.tuples(st.sampled_from("bc"), st.sampled_from(["if", "unless", ""]), _CONDITIONS), max_size=4
    ),
    st.booleans(),
)
def test_any_rules_are_obeyed_or_refused(rules: list[tuple[str, str, str]], has_default: bool):  # noqa: FBT001  # drawn
    """Whatever the rules are: all ports are served, or the frontend is left out with a refusal or a word."""
    lines = [f"use_backend {name} {word} {condition if word else ''}" for name, word, condition in rules]
    found = routed(
        *WAIT,
        "acl n req.ssl_sni -i y",
        *lines,
        binds=(1, 2),
        default="default_backend d" if has_default else "",
    )
    if found.config.api is None:
        assert found.refused or not has_default
        return
    assert found.refused == []
    ports = [bind.port for each in found.config.api.frontends.values() for bind in each.bind]
    assert sorted(ports) == [1, 2]
