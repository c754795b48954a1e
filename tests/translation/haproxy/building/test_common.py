"""Timeouts as HAProxy would apply them."""

import pytest
from support.translation.haproxy_files import read

from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure

LISTEN = "listen l\n  bind *:1\n  server s 10.0.0.1:1\n"


def timeouts(*lines: str) -> dict[str, float]:
    """Return the timeouts of a file with these lines in its `defaults`."""
    body = "".join(f"  {each}\n" for each in lines)
    found = read(f"defaults\n{body}{LISTEN}")
    assert found.refused == []
    return found.config.defaults.timeouts.model_dump()


def test_what_is_said():
    """Each has its own; plain numbers are milliseconds."""
    assert timeouts(
        "timeout connect 5000",
        "timeout queue 30s",
        "timeout client 1m",
        "timeout server 2m",
        "timeout client-fin 3s",
        "timeout server-fin 4s",
    ) == {
        "connect": 5.0,
        "queue": 30.0,
        "client": 60.0,
        "server": 120.0,
        "client_fin": 3.0,
        "server_fin": 4.0,
    }


def test_what_stands_behind_a_unit():
    """HAProxy 2.6 leaves it out with a warning, and so do we, with a word; without a unit it is no time."""
    assert timeouts("timeout connect 5s;", "timeout client 1m30s", "timeout server 2m")["client"] == 60.0
    found = read(
        "defaults\n  timeout client 1m30s\n" + LISTEN.replace("0.1:1\n", "0.1:1 tcp-ut 9s; check inter 1s[\n")
    )
    assert "the time is `1m`: HAProxy ignores `30s` after it" in str(found.line("timeout client").reason)
    assert "inter is `1s`: HAProxy ignores `[` after it" in str(found.lines("server")[-1].reason)
    assert (found.refused, (check := found.pool("l").check) and check.interval) == ([], 1.0)
    assert read(f"defaults\n  timeout client 1x\n{LISTEN}").outcome("timeout client") is Outcome.REFUSED


def test_what_is_not_said():
    """The queue has the time of connecting, and the half-closed what held before; else there is no end."""
    assert timeouts("timeout connect 5s", "timeout client 1m", "timeout server 2m") == {
        "connect": 5.0,
        "queue": 5.0,
        "client": 60.0,
        "server": 120.0,
        "client_fin": 60.0,
        "server_fin": 120.0,
    }
    assert set(timeouts().values()) == {365 * 86400.0}
    assert set(timeouts("timeout client 0").values()) == {365 * 86400.0}


def test_what_is_missing_is_told():
    """HAProxy warns of it too."""
    found = read(LISTEN)
    assert [str(each.reason).split(":")[0] for each in found.lines("listen")] == [
        "no `timeout client`",
        "no `timeout connect`",
        "no `timeout server`",
    ]


def test_a_tunnel():
    """It takes over once both have spoken; ours holds from the start, which is told where times differ."""
    found = timeouts(
        "timeout connect 5s",
        "timeout client 1m",
        "timeout server 5m",
        "timeout tunnel 5m",
        "timeout client-fin 1s",
    )
    assert (found["client"], found["server"], found["client_fin"], found["server_fin"]) == (
        300.0,
        300.0,
        1.0,
        300.0,
    )
    times = "  timeout connect 5s\n  timeout client 1m\n  timeout server 5m\n  timeout tunnel 5m\n"
    text = f"defaults\n{times}{LISTEN}"
    lines = read(text)
    assert lines.outcome("timeout client") is Outcome.CHANGED
    assert lines.outcome("timeout server") is Outcome.KEPT
    assert timeouts("timeout connect 5s", "timeout tunnel 1h")["client"] == 3600.0


def test_sections_that_differ():
    """`defaults` has what most have, the others say their own."""
    found = read(
        "defaults\n  timeout connect 5s\n  timeout client 1m\n  timeout server 1m\n"
        "listen a\n  bind *:1\n  server s 10.0.0.1:1\n"
        "listen b\n  bind *:2\n  timeout client 9s\n  timeout server 8s\n  timeout queue 7s\n"
        "  server s 10.0.0.1:1\nlisten c\n  bind *:3\n  server s 10.0.0.1:1\n"
    )
    assert found.config.defaults.timeouts.client == 60.0
    own = found.frontend("b").timeouts
    assert (own.client, own.client_fin) == (9.0, 9.0)
    assert found.frontend("a").timeouts.client is None
    pool = found.pool("b").timeouts
    assert (pool.server, pool.server_fin, pool.queue, pool.connect) == (8.0, 8.0, 7.0, None)


def test_old_spellings():
    """HAProxy 1 wrote them in one word."""
    found = timeouts("contimeout 5000", "clitimeout 50000", "srvtimeout 60000")
    assert (found["connect"], found["client"], found["server"]) == (5.0, 50.0, 60.0)
