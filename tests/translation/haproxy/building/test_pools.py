"""Sections with servers as pools: servers, their options, and the checks that they have in common."""

import pytest
from support.translation.haproxy_files import TIMES, backend, read

from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure


def servers(*lines: str, before: tuple[str, ...] = ()) -> object:
    """Return the pool of these servers as plain values."""
    found = backend(*before, *lines, server="")
    assert found.refused == []
    tree = found.tree
    assert isinstance(tree, dict)
    return tree["pools"]["b"]  # type: ignore[index, call-overload]  # a tree of plain values


def test_servers_and_their_options():
    """What is said of a server is said of it here; what all say alike is said once."""
    found = backend(
        "default-server check inter 3s fall 2 rise 4 weight 10",
        "server a 10.0.0.1:6443",
        "server b 10.0.0.2:6443 weight 20 maxconn 500 backup",
        "server c 10.0.0.3:6443 no-check inter 1s",
        server="server d 10.0.0.4:6443 fastinter 1s downinter 10s addr 10.0.0.9 port 80",
    )
    assert found.refused == []
    pool = found.pool()
    assert [each.weight for each in pool.servers.by_name.values()] == [10, 20, 10, 10]
    assert [each.backup for each in pool.servers.by_name.values()] == [False, True, False, False]
    assert pool.servers.by_name["b"].max_connections == 500
    assert pool.check is not None
    assert (pool.check.interval, pool.check.fall, pool.check.rise) == (3.0, 2, 4)
    assert pool.servers.by_name["c"].check is not None
    assert pool.servers.by_name["c"].check.type == "none"
    own = pool.servers.by_name["d"].check
    assert own is not None
    assert (own.fast_interval, own.down_interval, own.address, own.port) == (1.0, 10.0, "10.0.0.9", 80)
    assert pool.servers.by_name["a"].check is None


def test_default_servers_add_up():
    """Each holds for the servers behind it, and those of `defaults` hold for all."""
    found = read(
        f"{TIMES}  default-server check inter 9s\n"
        "backend b\n  server a 10.0.0.1:1\n  default-server inter 1s\n  server b 10.0.0.2:1\n"
        "backend c\n  server a 10.0.0.1:1\n"
    )
    first = found.pool("b")
    assert first.servers.by_name["a"].check is not None
    assert first.servers.by_name["a"].check.interval == 9.0
    assert first.servers.by_name["b"].check is not None
    assert first.servers.by_name["b"].check.interval == 1.0
    other = found.pool("c").check
    assert other is not None
    assert other.interval == 9.0


def test_servers_that_are_not_checked():
    """Without `check` a server is always up."""
    assert servers("server a 10.0.0.1:1") == {
        "on_down": "keep",
        "check": False,
        "servers": {"a": {"address": "10.0.0.1:1"}},
    }


def test_checks_that_are_not_made():
    """What a line says of them means nothing without `check`, with HAProxy too."""
    found = backend("default-server rise 3", server="server s 10.0.0.1:1 inter 5s check-ssl weight 3")
    assert [(each.place.column, str(each.reason)) for each in found.lines("server s")] == [
        (32, "check-ssl: it has no effect without `check`"),
        (23, "inter: it has no effect without `check`"),
    ]


def test_times_of_checks():
    """HAProxy's interval is 2s, and without `timeout check` a whole check may take that."""
    check = backend().pool().check
    assert check is not None
    assert (check.interval, check.timeout, check.error_limit) == (2.0, 2.0, 0)
    check = backend("timeout check 7s", server="server s 10.0.0.1:1 check inter 5s").pool().check
    assert check is not None
    assert (check.interval, check.timeout) == (5.0, 7.0)
    check = backend("timeout check 0", server="server s 10.0.0.1:1 check inter 0").pool().check
    assert check is not None
    assert (check.interval, check.timeout) == (2.0, 2.0)


def test_checks_of_several_kinds():
    """What only one kind has is not said of all."""
    found = backend(
        "server a 10.0.0.1:1 check",
        server="server b 10.0.0.2:1 check check-ssl verify none check-sni b.example.com",
    )
    assert found.refused == []
    assert found.pool().servers.by_name["a"].check is not None
    assert found.pool().servers.by_name["a"].check.type == "tcp"
    assert found.pool().servers.by_name["b"].check is not None
    assert found.pool().servers.by_name["b"].check.sni == "b.example.com"
    both = backend(
        "server a 10.0.0.1:1 check check-ssl verify none check-sni x",
        server="server b 10.0.0.2:1 check check-sni x",
    )
    assert both.refused == []
    assert both.pool().servers.by_name["a"].check is not None
    assert both.pool().servers.by_name["a"].check.sni == "x"


@pytest.mark.parametrize(
    ("words", "verify"),
    [
        ("verify none", None),
        ("verify required ca-file /etc/ca.pem", "/etc/ca.pem"),
        ("ca-file /etc/ca.pem", "/etc/ca.pem"),
        ("verify none ca-file /etc/ca.pem", None),
    ],
)
def test_certificates(words: str, verify: str | None):
    """A CA is asked where verification is, which it is by default."""
    found = backend(server=f"server s 10.0.0.1:1 check check-ssl {words}")
    assert found.refused == []
    check = found.pool().check
    assert check is not None
    assert (check.type, check.verify) == ("tls", verify)


@pytest.mark.parametrize("words", ["", "verify required", "ca-file @system-ca", "ca-file ca.pem", "verify x"])
def test_certificates_of_nobody(words: str):
    """Who verifies must say by whom."""
    assert backend(server=f"server s 10.0.0.1:1 check check-ssl {words}").refused


def test_certificates_of_the_process():
    """`ssl-server-verify none` and `ca-base` in `global` hold for all."""
    text = f"{TIMES}backend b\n  server s 10.0.0.1:1 check check-ssl"
    found = read(f"global\n  ssl-server-verify none\n{text}\n")
    assert found.refused == []
    check = read(f"global\n  ca-base /etc/ssl\n{text} ca-file ca.pem\n").pool().check
    assert check is not None
    assert check.verify == "/etc/ssl/ca.pem"


def test_servers_without_an_address():
    """They are left out, whatever else their line says: the machine is not known yet, the others serve."""
    found = backend(
        "server a :6443 check",
        "server b 0.0.0.0:6443 check bogus",
        "server c [::]:6443 check",
    )
    assert list(found.pool().servers.by_name) == ["s"]
    assert found.outcome("server a") is Outcome.IGNORED
    assert (
        found.line("server a").reason == "the server `a` has no address: it is left out, and the others serve"
    )
    assert found.outcome("server b") is Outcome.REFUSED
    assert found.outcome("server c") is Outcome.IGNORED


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("server s", "the server needs a name and an address"),
        ("server x 10.0.0.1:99999", "is not a port"),
        ("server s 10.0.0.2:1", "the server `s` exists already"),
        ("server x 10.0.0.1:1 weight 300", "weight: `300` is not a number from 0 to 256"),
        ("server x 10.0.0.1:1 weight", "`weight` needs a value"),
        ("server x 10.0.0.1:1 id x", "id: `x` is not a number"),
        ("server x/y 10.0.0.1:1", "`x/y` is not a valid name: use letters, digits, dots"),
        ("server x 10.0.0.1:1 inter x", "inter: `x` is not a HAProxy time"),
        ("server x 10.0.0.1:1 addr x~y", "addr: "),
        ("server x 10.0.0.1:1 check-sni x_y", "check-sni: "),
        ("server x 10.0.0.1:1 observe layer7", "observe: `layer7` is unknown: write layer4"),
        ("server x 10.0.0.1:1 ssl", "connections to servers add no TLS"),
        ("server x 10.0.0.1:1 track a/b", "does not copy another server's state"),
        ("server x 10.0.0.1:1 chekc", "`chekc` is unknown: did you mean `check`?"),
        ("server x _http._tcp.example.com:1", "service records (SRV) are not queried"),
        ("server-template m 3", "`server-template PREFIX NUMBER NAME:PORT`"),
        ("server-template m 3-1 m.example.com:1", "`3-1` is neither a number of servers nor a range"),
        ("server-template m 0 m.example.com:1", "`0` is neither a number"),
        ("server-template m x m.example.com:1", "`x` is neither a number"),
        ("server-template m 1025 m.example.com:1", "more than 1024 servers"),
        ("server-template m 3 10.0.0.1:1", "is no DNS name"),
        ("server-template m 3 :1", "is no DNS name"),
        ("server-template m 3 m.example.com:x", "`x` is not a port"),
        ("server-template m 3 _http._tcp.example.com:1", "service records (SRV) are not queried"),
        ("server-template m/ 3 m.example.com:1", "is not a valid name"),
        ("server-template s '' m.example.com:1", "is neither a number"),
    ],
)
def test_what_is_refused_of_servers(line: str, refused: str):
    """The word that cannot be obeyed is named."""
    found = backend(server=f"server s 10.0.0.1:6443 check\n  {line}")
    assert refused in found.refused[0]


@pytest.mark.parametrize(
    ("numbers", "names"), [("3", ["m1", "m2", "m3"]), ("2-3", ["m2", "m3"]), ("1", ["m1"])]
)
def test_servers_of_a_template(numbers: str, names: list[str]):
    """They have one name and one line; the addresses are found where the servers are checked."""
    found = backend(f"server-template m {numbers} m.example.com:81 check weight 5", server="")
    servers = found.pool("b").usable
    assert (found.refused, list(servers)) == ([], names)
    assert {(each.address.host, each.address.port, each.weight) for each in servers.values()} == {
        ("m.example.com", 81, 5)
    }
    told = [each.reason for each in found.found.lines if each.outcome is Outcome.CHANGED]
    assert f"m{names[0][1]} to {names[-1]}: each server has another address of the name" in str(told)


@pytest.mark.parametrize("line", ["server m2 10.0.0.1:1", "server-template m 2-4 m.example.com:81"])
def test_a_template_takes_no_name_that_exists(line: str):
    """HAProxy refuses it too."""
    found = backend("server-template m 3 m.example.com:81", line, server="")
    assert "`m2` exists already" in found.refused[0]


@pytest.mark.parametrize(
    "lines",
    [
        ("server a 10.0.0.1:443 ssl verify none", "server b 10.0.0.2:443"),
        ("server b 10.0.0.2:443", "default-server ssl", "server a 10.0.0.1:443"),
    ],
)
def test_a_server_with_tls_is_not_spoken_to_in_the_clear(lines: tuple[str, ...]):
    """It is refused and left out of what is written; the others stay, and nothing is said of a pool."""
    found = backend(*lines, server="")
    (refused,) = found.refused
    assert "ssl: connections to servers add no TLS" in refused
    tree = found.tree
    assert isinstance(tree, dict)
    assert list(tree["pools"]["b"]["servers"]) == ["b"]  # type: ignore[index, call-overload]  # plain values


def test_ports_that_follow_the_client():
    """A server without a port has that of the one bind that leads to it."""
    found = backend(server="server s 10.0.0.1 check\n  server t 10.0.0.2:+1000 check")
    assert [str(each.address) for each in found.pool().servers.by_name.values()] == [
        "10.0.0.1:6443",
        "10.0.0.2:7443",
    ]
    assert found.outcome("server s") is Outcome.CHANGED
    several = read(f"{TIMES}listen l\n  bind *:1-2\n  server s 10.0.0.1\n  server t 10.0.0.2:-9\n")
    assert [each[:4] for each in several.refused] == ["8:12"]
    none = read(f"{TIMES}backend b\n  server s 10.0.0.1\n")
    assert "a server has one port" in none.refused[0]


def test_names_that_are_not_ours():
    """They are changed, so that each is there once."""
    found = backend(server="server a:1 10.0.0.1:1\n  server a-1 10.0.0.2:1")
    assert list(found.pool().servers.by_name) == ["a-1", "a-1-2"]
    assert found.outcome("server a:1") is Outcome.CHANGED


def test_disabled_servers():
    """They are left out; the operator's states are not of the file."""
    found = backend(
        server="server s 10.0.0.1:1\n  server t 10.0.0.2:1 disabled\n  server u 10.0.0.3:1 enabled"
    )
    assert list(found.pool().servers.by_name) == ["s", "u"]
    assert found.outcome("server t") is Outcome.CHANGED


def test_several_backups():
    """The first that is up is used, and with `option allbackups` all are."""
    lines = "server s 10.0.0.1:1\n  server t 10.0.0.2:1 backup\n  server u 10.0.0.3:1 backup"
    for options, together in ((), False), (("option allbackups",), True), (("no option allbackups",), False):
        found = backend(*options, server=lines)
        assert found.pool().all_backups is together
        assert [found.outcome(f"server {each}") for each in "tu"] == [Outcome.KEPT] * 2
        assert all(found.outcome(each) is Outcome.KEPT for each in options)
    third = f"{lines}\n  server v 10.0.0.4:1 backup no-backup"
    assert not backend(server=third).pool().servers.by_name["v"].backup


def test_settings_of_a_pool():
    """Slow start, sessions of servers that are down, and unacknowledged bytes are one for all servers."""
    options = "slowstart 60s on-marked-down shutdown-sessions tcp-ut 20s maxqueue 5"
    found = backend(server=f"server s 10.0.0.1:1 {options}\n  server t 10.0.0.2:1 {options}")
    pool = found.pool()
    assert (pool.slow_start, pool.on_down, pool.tcp_user_timeout, pool.max_queue) == (
        *(60.0, "close-sessions", 20.0, 10),
    )
    partly = backend(
        server=f"server s 10.0.0.1:1 {options}\n  server t 10.0.0.2:1 slowstart 30s\n  server u 10.0.0.3:1"
    )
    assert partly.refused == []
    assert (partly.pool().slow_start, partly.pool().max_queue) == (60.0, 0)
    reasons = [str(each.reason) for each in partly.lines("server")]
    assert "slowstart applies to all servers of a pool, including those that do not set it" in reasons
    assert "60s: all servers of a pool share one value" in [each.replace("1m", "60s") for each in reasons]
    assert backend(server="server s 10.0.0.1:1 slowstart 0").pool().slow_start == 0.0


def test_sessions_of_backups():
    """They end when a server comes up that says so and is no backup; others say nothing."""
    spare = "server t 10.0.0.2:1 backup"
    for option, spares, found in (
        ("", spare, "keep"),
        ("on-marked-up shutdown-backup-sessions", spare, "close-backup-sessions"),
        ("", f"{spare} on-marked-up shutdown-backup-sessions", "keep"),
    ):
        asked = backend(server=f"server s 10.0.0.1:1 check {option}\n  {spares}")
        assert asked.refused == []
        assert asked.pool().on_up == found
    wrong = backend(server="server s 10.0.0.1:1 on-marked-up shutdown-sessions")
    assert ["is unknown: write shutdown-backup-sessions" in each for each in wrong.refused] == [True]
    partly = f"server s 10.0.0.1:1 on-marked-up shutdown-backup-sessions\n  server u 10.0.0.3:1\n  {spare}"
    reason = "on-marked-up applies to all servers of a pool, including those that do not set it"
    assert [str(each.reason) for each in backend(server=partly).lines("server s")] == [reason]


def test_proxy_headers():
    """All servers get the same one; checks get it where HAProxy's do."""
    found = backend(
        server="server s 10.0.0.1:1 check send-proxy-v2\n  server t 10.0.0.2:1 check send-proxy-v2"
    )
    assert found.pool().send_proxy == "v2"
    assert found.pool().check is not None
    assert found.pool().check.send_proxy is None
    asked = backend(server="server s 10.0.0.1:1 check port 80 send-proxy check-send-proxy").pool().check
    assert asked is not None
    assert asked.send_proxy == "v1"
    mixed = backend(
        server="server s 10.0.0.1:1 send-proxy\n  server t 10.0.0.2:1\n  server u 10.0.0.3:1 send-proxy-v2"
    )
    assert [each.split(":")[0] for each in mixed.refused] == ["10", "11"]
    undone = backend("default-server send-proxy", server="server s 10.0.0.1:1 no-send-proxy")
    assert undone.pool().send_proxy == "none"


def test_failed_connects():
    """They matter with `observe layer4`, ten of them if nothing is said."""
    for words, limit in (("observe layer4", 10), ("observe layer4 error-limit 3 on-error fail-check", 3)):
        check = backend(server=f"server s 10.0.0.1:1 check {words}").pool().check
        assert check is not None
        assert check.error_limit == limit
    found = backend(server="server s 10.0.0.1:1 check error-limit 3 on-error mark-down")
    assert len(found.lines("server")) == 2
    assert {each.outcome for each in found.lines("server")} == {Outcome.IGNORED}
    assert backend(server="server s 10.0.0.1:1 check observe layer4 on-error mark-down").outcome(
        "server"
    ) is (Outcome.CHANGED)


def test_keepalive():
    """`option tcpka` and `srvtcpka`, with what is said of them."""
    found = backend("option srvtcpka", "srvtcpka-idle 30s", "srvtcpka-intvl 5s", "srvtcpka-cnt 4")
    keepalive = found.pool().keepalive
    assert keepalive is not None
    assert (keepalive.idle, keepalive.interval, keepalive.count) == (30.0, 5.0, 4)
    assert found.outcome("option") is Outcome.KEPT
    assert backend("option tcpka").outcome("option") is Outcome.CHANGED
    off = backend("no option srvtcpka").pool().keepalive
    assert off is not None
    assert off.count == 0
    assert backend("srvtcpka-idle 1500").outcome("srvtcpka-idle") is Outcome.CHANGED
    assert backend("srvtcpka-idle x").refused
    assert backend("srvtcpka-cnt 200").refused


def test_retries():
    """They are HAProxy's three where nothing is said, and `defaults` has what most have."""
    found = read(
        f"{TIMES}listen a\n  bind *:1\n  server s 10.0.0.1:1\n"
        "listen b\n  bind *:2\n  retries 5\n  server s 10.0.0.1:1\n"
    )
    assert found.config.defaults.retries == 5
    assert found.pool("a").retries == 3
    assert found.pool("b").retries is None
    assert backend("retries 3").outcome("retries") is Outcome.CHANGED
    assert backend("retries 0").outcome("retries") is Outcome.KEPT
    assert backend("retries 3", "option redispatch").outcome("retries") is Outcome.KEPT
    assert backend("no option redispatch").outcome("no option") is Outcome.CHANGED
    assert backend("source 0.0.0.0").outcome("source") is Outcome.KEPT
    assert backend("source 10.0.0.9").outcome("source") is Outcome.REFUSED
