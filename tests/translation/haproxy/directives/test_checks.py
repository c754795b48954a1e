r"""How servers are checked: `option httpchk` old and new, `http-check`, `tcp-check`."""

import pytest
from support.translation.haproxy_files import TIMES, backend, read

from appliance.model.config.pools import CheckSection
from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure

TLS = "server s 10.0.0.1:6443 check check-ssl verify none"


def check(*lines: str, server: str = "server s 10.0.0.1:6443 check") -> dict[str, object]:
    """Return the keys of the check, without those of time."""
    found = backend(*lines, server=server)
    assert found.refused == []
    tree = found.tree
    assert isinstance(tree, dict)
    keys = tree["pools"]["b"]["check"]  # type: ignore[index, call-overload]  # a tree of plain values
    assert isinstance(keys, dict)
    return {key: value for key, value in keys.items() if key not in {"interval", "timeout", "error_limit"}}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("option httpchk", {"type": "http", "method": "OPTIONS", "path": "/"}),
        ("option httpchk /readyz", {"type": "http", "method": "OPTIONS", "path": "/readyz"}),
        ("option httpchk HEAD /readyz", {"type": "http", "method": "HEAD", "path": "/readyz"}),
        ("option httpchk GET /readyz HTTP/1.0", {"type": "http", "method": "GET", "path": "/readyz"}),
        (
            r"option httpchk GET / HTTP/1.1\r\nHost:\ api.example.com",
            {"type": "http", "method": "GET", "path": "/", "host": "api.example.com"},
        ),
        (
            r"option httpchk GET / HTTP/1.1\nhost:\ api:6443\r\nUser-Agent:\ x\r\n",
            {"type": "http", "method": "GET", "path": "/", "host": "api:6443"},
        ),
        ("option ssl-hello-chk", {"type": "tls"}),
        ("option tcp-check", {"type": "tcp"}),
        ("no option httpchk", {"type": "tcp"}),
        ("balance source", {"type": "tcp"}),
    ],
)
def test_kinds(line: str, expected: dict[str, object]):
    """The old form carries headers behind the version."""
    assert check(line) == expected


def test_the_last_kind_holds():
    """Each option takes the place of the one before it, that of the defaults too."""
    assert check("option httpchk GET /x", "option tcp-check") == {"type": "tcp"}
    assert check("option tcp-check", "option httpchk GET /x")["path"] == "/x"


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("option httpchk get /", "must be a method"),
        ("option httpchk GET x", "must be a path"),
        ("option httpchk GET / 1.0", "`1.0` is not a version"),
        (r"option httpchk GET / HTTP/1.1\r\nAuthorization:\ x", "the header `Authorization` cannot be sent"),
        (r"option httpchk GET / HTTP/1.1\r\nHost:\ a~b", "is not a DNS name"),
        ("option spop-check", "this check is not supported"),
    ],
)
def test_what_cannot_be_asked(line: str, refused: str):
    """It is refused, with what can."""
    assert refused in backend(line).refused[0]


def test_the_new_form():
    """`http-check send` says the request."""
    lines = ("option httpchk", "http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host api hdr Accept x")
    assert check(*lines) == {"type": "http", "method": "GET", "path": "/readyz", "host": "api"}
    found = backend("option httpchk", "http-check send meth GET comment x body y hdr X-A b")
    assert [each.split(": ", 1)[1][:30] for each in found.refused] == [
        "`body` is not supported: `meth",
        "the header `X-A` cannot be sen",
    ]


def test_the_connection_of_a_check():
    """Its port, address, name and TLS; TLS needs to know whose certificates are good."""
    assert check(
        "option httpchk GET /",
        "http-check connect default port 1936 addr 10.0.0.9 ssl sni api.example.com alpn h2 linger comment x",
        server=TLS,
    ) == {
        "type": "https",
        "method": "GET",
        "path": "/",
        "sni": "api.example.com",
        "port": 1936,
        "address": "10.0.0.9",
    }
    assert check("option tcp-check", "tcp-check connect port 80") == {"type": "tcp", "port": 80}
    assert check("option tcp-check", "tcp-check connect ssl", server=TLS)["type"] == "tls"
    assert (
        check("option tcp-check", "tcp-check connect send-proxy", server=f"{TLS} send-proxy")["send_proxy"]
        == "v1"
    )


def test_several_connections():
    """Each is a check of its own, with what is sent there; a port that one has not is the server's."""
    found = check(
        "option tcp-check",
        "tcp-check connect port 25 addr 10.0.0.9",
        "tcp-check expect string 220",
        "tcp-check connect ssl sni mail.example.com",
        "tcp-check connect port 110 addr 10.0.0.8",
        "tcp-check send a",
        "tcp-check expect string b",
        server=TLS,
    )
    assert (found["port"], found["steps"]) == (25, [{"expect": "220"}])
    assert found["also"] == {
        "connect-2": {"type": "tls", "sni": "mail.example.com", "address": "10.0.0.1", "port": 6443},
        "connect-3": {
            "type": "tcp",
            "address": "10.0.0.8",
            "port": 110,
            "steps": [{"send": "a", "expect": "b"}],
        },
    }


def test_a_connection_has_of_the_server_what_it_asks_for():
    """TLS and the PROXY header of the server's line need the word `default`, as in HAProxy."""
    server = f"{TLS} check-ssl send-proxy check-send-proxy"
    rules = ("option tcp-check", "tcp-check connect", "tcp-check connect default")
    found = check(*rules, server=server)
    assert (found["type"], found["send_proxy"]) == ("tcp", "none")
    assert found["also"] == {"connect-2": {"type": "tls", "send_proxy": "v1"}}
    assert check("option tcp-check", "tcp-check connect default", server=server)["send_proxy"] == "v1"


EXTERNAL = ("option external-check", "external-check command /opt/check")


def by_command(*lines: str, server: str = "") -> CheckSection:
    """Return the check of a backend with a command."""
    found = backend(*EXTERNAL, *lines, server=f"server s 10.0.0.1:6443 check {server}")
    check = found.pool("b").check
    assert (found.refused, check is None) == ([], False)
    assert check is not None
    return check


def test_a_command_checks_servers():
    """A backend listens nowhere; `addr` and `port` of a server do not concern the command."""
    found = by_command(server="inter 3s addr 10.0.0.9 port 5 check-ssl verify none")
    assert (found.type, found.interval, found.timeout) == ("command", 3.0, 3.0)
    assert found.command is not None
    assert found.command[1:] == ("HAPROXY_PROXY_NAME=b", "/opt/check", "NOT_USED", "NOT_USED")
    assert (found.address, found.port) == (None, None)


@pytest.mark.parametrize(
    ("lines", "server", "timeout"),
    [
        ((), "", 2.0),
        (("timeout check 1s", "timeout connect 9s"), "", 2.0),
        (("timeout check 1s", "timeout connect 500ms"), "", 0.5),
        (("timeout check 9s", "timeout connect 5s"), "inter 4s", 4.0),
        (("timeout connect 500ms",), "", 2.0),
    ],
)
def test_how_long_a_command_may_take(lines: tuple[str, ...], server: str, timeout: float):
    """As long as `inter`, or `timeout connect` where there is a `timeout check`, as in HAProxy."""
    assert by_command(*lines, server=server).timeout == timeout


def test_a_command_of_a_section_that_listens():
    """It is told the section's first address, and has the path that is set for it."""
    text = (
        f"{TIMES}listen b\n  bind *:3306,10.0.0.9:1\n  option external-check\n"
        "  external-check path /bin:/usr/bin\n  external-check command check\n"
        "  server s 10.0.0.1:3306 check\n"
    )
    found = read(text).pool("b").check
    assert found is not None
    assert found.command == (
        "/usr/bin/env",
        "HAPROXY_PROXY_NAME=b",
        "HAPROXY_PROXY_ADDR=0.0.0.0",
        "HAPROXY_PROXY_PORT=3306",
        "PATH=/bin:/usr/bin",
        "check",
        "0.0.0.0",
        "3306",
    )


def test_connections_that_cannot_be():
    """With words that are known, and not too many; by HTTP there is one."""
    assert "`via-socks4` cannot be set" in backend("tcp-check connect via-socks4").refused[0]
    assert "at most 17 connections" in backend(*["tcp-check connect port 1"] * 18).refused[0]
    assert "one connection" in backend("http-check connect port 1", "http-check connect port 2").refused[0]
    assert "is not a number" in backend("http-check connect port x").refused[0]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("status 200", {"expect": 200}),
        ("status 200-399", {"expect": "200-399"}),
        ("status 200,204,300-310", {"expect": [200, 204, "300-310"]}),
        ("! status 500-599", {"expect": "100-499"}),
        ("! status 404", {"expect": ["100-403", "405-599"]}),
        ("rstatus ^[23]..$", {"expect": "200-399"}),
        ("rstatus 20[0-4]|301", {"expect": ["200-204", 301]}),
        ("string ok", {"expect_body": "ok", "expect": "100-599"}),
        (r"string all\ is\ well", {"expect_body": "all is well", "expect": "100-599"}),
        ("rstring ok", {"expect_body": "ok", "expect": "100-599"}),
        ("comment x min-recv 2 status 200", {"expect": 200}),
    ],
)
def test_expected_answers(rule: str, expected: dict[str, object]):
    """With a rule of its own HAProxy asks for nothing else: a text is good with any status."""
    found = check("option httpchk GET /", f"http-check expect {rule}")
    assert {key: value for key, value in found.items() if key.startswith("expect")} == expected


def test_two_rules():
    """A status and a text must both be there."""
    found = check("option httpchk GET /", "http-check expect status 200", "http-check expect string ok")
    assert (found["expect"], found["expect_body"]) == (200, "ok")


@pytest.mark.parametrize(
    ("rules", "refused"),
    [
        (["status x"], "must be a status"),
        (["status 399-200"], "upside down"),
        (["! status 100-599"], "no status would pass"),
        (["! status x"], "must be a status"),
        (["rstatus 2.*"], "is not supported"),
        (["rstatus [2-"], "is not a regular expression"),
        (["rstatus 777"], "no status would pass"),
        (["! string x"], "`! string` is not supported"),
        (["hdr name x"], "`hdr` is not supported"),
        (["string"], "a value is missing"),
        (['string "" x'], "the answer must contain is missing"),
        (["rstring o+k"], "regular expressions"),
        (["status 200", "status 201"], "line 9 already sets the good statuses"),
        (["string a", "string b"], "searches the answer for one text"),
        ([""], "is not supported"),
    ],
)
def test_what_cannot_be_expected(rules: list[str], refused: str):
    """It is refused where it stands, with what can."""
    assert refused in backend(*(f"http-check expect {each}" for each in rules)).refused[0]


def test_rules_of_the_defaults():
    """The first rule of a section takes the place of those that it was given."""
    found = read(
        f"{TIMES}  option httpchk GET /a\n  http-check expect status 200\n"
        "listen l\n  bind *:1\n  server s 10.0.0.1:1 check\n"
        "listen m\n  bind *:2\n  http-check expect string ok\n  server s 10.0.0.1:1 check\n"
        "listen n\n  bind *:3\n  option httpchk GET /n\n  server s 10.0.0.1:1 check\n"
    )
    assert found.refused == []
    kept, own, other = (found.pool(name).check for name in "lmn")
    assert kept is not None
    assert own is not None
    assert other is not None
    assert (kept.path, kept.expect) == ("/a", ((200, 200),))
    assert (own.path, own.expect_body, own.expect) == ("/a", "ok", ((100, 599),))
    assert (other.path, other.expect) == ("/n", ((200, 399),))


def test_a_hello_of_ssl():
    """The whole handshake is made; nobody's certificate is asked for."""
    found = backend("option ssl-hello-chk")
    assert found.outcome("option") is Outcome.CHANGED
    assert found.refused == []
