"""`balance`, and what of it is ours."""

import pytest
from support.translation.haproxy_files import TIMES, backend, read

from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("line", "expected", "outcome"),
    [
        ("balance roundrobin", "roundrobin", Outcome.KEPT),
        ("balance static-rr", "roundrobin", Outcome.CHANGED),
        ("balance leastconn", "leastconn", Outcome.KEPT),
        ("balance source", "source", Outcome.CHANGED),
        ("balance random", "random", Outcome.KEPT),
        ("balance random(2)", "random", Outcome.KEPT),
        ("balance random(3)", "random", Outcome.CHANGED),
        ("balance hash src", "source", Outcome.CHANGED),
        ("balance first", "first", Outcome.CHANGED),
        ("balance hash path", "roundrobin", Outcome.REFUSED),
        ("balance hash", "roundrobin", Outcome.REFUSED),
        ("balance uri depth 3", "roundrobin", Outcome.REFUSED),
        ("balance hdr(host)", "roundrobin", Outcome.REFUSED),
        ("balance leastcon", "roundrobin", Outcome.REFUSED),
        ("balance qqqqqqqqq", "roundrobin", Outcome.REFUSED),
        ("balance", "roundrobin", Outcome.KEPT),
        ("balance leastconn\n  balance", "roundrobin", Outcome.KEPT),
    ],
)
def test_algorithms(line: str, expected: str, outcome: Outcome):
    """Each is ours, nearly ours, or refused with what to write."""
    found = backend(line)
    assert (found.pool().balance, found.lines("balance")[-1].outcome) == (expected, outcome)


def test_the_nearest_algorithm():
    """A slip of the pen is named."""
    assert backend("balance leastcon").refused == [
        "9:11: `leastcon` is not an algorithm: did you mean `leastconn`?"
    ]
    refused = backend("balance qqqqqqqqq").refused[0]
    assert "write one of roundrobin" in refused
    assert backend("balance firs").refused[0].endswith("did you mean `first`?")


def test_servers_are_filled_in_the_order_of_their_ids():
    """`balance first` goes by `id`; HAProxy numbers the servers that have none."""
    ids = ("", "id 2", "id 1", "", "id 20", "", "")
    servers = [f"server s{at} 10.0.0.{at}:6443 {id_}" for at, id_ in enumerate(ids, 1)]
    found = backend("balance first", *servers, server="")
    assert list(found.pool().servers.by_name) == ["s3", "s2", "s1", "s4", "s6", "s7", "s5"]
    told = [(each.outcome, "`id`" in str(each.reason)) for each in found.lines("balance")]
    assert told == [(Outcome.CHANGED, False), (Outcome.CHANGED, True)]
    plain = backend("balance leastconn", *servers, server="")
    assert list(plain.pool().servers.by_name) == [f"s{at}" for at in range(1, 8)]
    assert plain.outcome("server s2") is Outcome.IGNORED
    assert len(backend("balance first", *reversed(servers[2:4]), server="").lines("balance")) == 2
    assert len(backend("balance first", servers[0], servers[1], server="").lines("balance")) == 1


@pytest.mark.parametrize("kind", ["ip", "ipv6"])
def test_clients_that_stick_by_their_address(kind: str):
    """`stick on src` keeps a client at a server: `source`, and the report says what differs."""
    found = backend("balance leastconn", f"stick-table type {kind} size 1m expire 30m", "stick on src")
    assert (found.refused, found.pool().balance) == ([], "source")
    assert found.outcome("stick on") is Outcome.CHANGED
    assert "no table stores it" in str(found.line("stick on").reason)
    assert found.outcome("stick-table") is Outcome.IGNORED
    assert found.outcome("balance") is Outcome.CHANGED
    assert "line 11" in str(found.line("balance").reason)


def test_both_halves_of_sticking():
    """`stick match src` and `stick store-request src` together are `stick on src`."""
    halves = ("stick store-request src", "stick match src")
    found = backend("balance leastconn", "stick-table type ip size 1m", *halves)
    assert found.pool().balance.value == "source"
    assert [each.outcome for each in found.lines("stick ")] == [Outcome.CHANGED, Outcome.CHANGED]
    assert "because of `stick store-request src` on line" in str(found.line("balance").reason)


@pytest.mark.parametrize(("half", "other"), [("match", "store-request"), ("store-request", "match")])
def test_one_half_of_sticking(half: str, other: str):
    """A table that is only written, or only read, keeps no client anywhere: so it is with HAProxy 2.6."""
    found = backend("balance leastconn", "stick-table type ip size 1m", f"stick {half} src")
    assert found.pool().balance.value == "leastconn"
    assert found.outcome("stick ") is Outcome.IGNORED
    assert f"without `stick {other} src` no client stays" in str(found.line("stick ").reason)


def test_clients_that_stick_whatever_defaults_say():
    """What `defaults` say of the algorithm holds for others; `balance source` is what it was."""
    rest = "  stick-table type ip size 1k\n  stick on src\n  server s 10.0.0.1:6443\n"
    front = "frontend f\n  bind *:6443\n  default_backend b\nbackend b\n"
    found = read(f"{TIMES}  balance leastconn\n{front}{rest}")
    assert (found.refused, found.pool().balance) == ([], "source")
    assert found.outcome("balance") is Outcome.IGNORED
    again = backend("balance source", "stick-table type ip size 1k", "stick on src")
    assert (again.pool().balance, len(again.lines("balance"))) == ("source", 1)


@pytest.mark.parametrize(
    "lines",
    [
        ("stick on src",),
        ("stick-table type string len 32 size 1k", "stick on src"),
        ("stick-table", "stick on src"),
        ("stick-table type ip size 1k", "stick on dst"),
        ("stick-table type ip size 1k", "stick on src table other"),
        ("stick-table type ip size 1k", "stick on src if { src 10.0.0.0/8 }"),
        ("stick-table type ip size 1k", "stick store-response src"),
        ("stick match src", "stick store-request src"),
        ("stick-table type binary len 32 size 1k", "stick on payload_lv(43,1)"),
    ],
)
def test_what_clients_do_not_stick_by(lines: tuple[str, ...]):
    """Other rules and tables are refused: nobody gets another server than the file means without a word."""
    found = backend(*lines)
    assert {each.outcome for each in found.lines("stick ")} == {Outcome.REFUSED}
    assert found.pool().balance == "roundrobin"
