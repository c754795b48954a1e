"""Checkers of a server: the check that each becomes, and how often and how patiently it is asked."""

import json
from hashlib import md5

import pytest
from support.translation.keepalived_files import mapping, told, translated
from support.translation.virtual_servers import check, pool, real_server, refusals, virtual_server

from appliance.model.document.tree import Plain, plain
from appliance.model.loading.loading import load
from appliance.translation.translation import Outcome, Translation

pytestmark = pytest.mark.pure

C, I, R = Outcome.CHANGED, Outcome.IGNORED, Outcome.REFUSED  # noqa: E741  # as the outcomes are called

OK = md5(b"ok", usedforsecurity=False).hexdigest()
HTTP: dict[str, Plain] = {"type": "http", "expect": "200-299", "path": "/x"}


def smtp(name: str) -> list[Plain]:
    """Return the steps of a conversation with a mail server."""
    return [
        {"expect_rstring": r"^(220-[^\n]*\n)*220[ \r\n]"},
        {"send": f"HELO {name}\r\n", "expect_rstring": r"^(250-[^\n]*\n)*250[ \r\n]"},
        {"send": "QUIT\r\n"},
    ]


def checked(*lines: str, outer: tuple[str, ...] = ("delay_loop 5",)) -> Translation:
    """Return the translation of a virtual server whose one server says these lines."""
    return translated(virtual_server(*outer, servers=real_server(*lines)))


def asked(*lines: str) -> dict[str, Plain]:
    """Return what the one check asks, without how often; our own validation takes it."""
    translation = checked(*lines)
    assert refusals(translation) == []
    assert load(json.dumps(plain(translation.root)), source="x", number=1).errors == ()
    found = mapping(check(translation))
    return {key: value for key, value in found.items() if key not in _TIMES}


_TIMES = ("interval", "fast_interval", "timeout", "rise", "fall")


def times(*lines: str, outer: tuple[str, ...] = ()) -> tuple[Plain, ...]:
    """Return interval, fast interval, timeout, rise and fall of the one check."""
    found = mapping(check(checked(*lines, outer=outer)))
    return tuple(found.get(key) for key in _TIMES)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("TCP_CHECK { }",), {"type": "tcp"}),
        (
            ("TCP_CHECK {", "connect_ip 192.0.2.9", "connect_port 81", "}"),
            {"type": "tcp", "address": "192.0.2.9", "port": 81},
        ),
        (("HTTP_GET {", "url { path /x", "}", "}"), HTTP),
        (
            ("SSL_GET {", "url {", "path /x", "status_code 200 301-303", "}", "}"),
            {**HTTP, "type": "https", "expect": [200, "301-303"]},
        ),
        (
            ("virtualhost b.example", "HTTP_GET {", "url {", "path /x", "}", "virtualhost a.example", "}"),
            {**HTTP, "host": "a.example"},
        ),
        (
            ("HTTP_GET {", "virtualhost a.example", "url {", "path /x", "virtualhost c.example", "}", "}"),
            {**HTTP, "host": "c.example"},
        ),
        (
            ("SSL_GET {", "enable_sni", "url { path /x", "virtualhost a.example", "}", "}"),
            {**HTTP, "type": "https", "host": "a.example", "sni": "a.example"},
        ),
        (("SSL_GET {", "enable_sni", "url { path /x", "}", "}"), {**HTTP, "type": "https"}),
        (("HTTP_GET {", "url {", "path /x", f"digest {OK}", "}", "}"), {**HTTP, "expect_digest": OK}),
        (
            (
                *("SSL_GET {", "enable_sni", "virtualhost a.example", "url {", "path /x", "}"),
                *("url {", "path /y", "virtualhost b.example", "status_code 204", f"digest {OK}", "}", "}"),
            ),
            {
                **HTTP,
                "type": "https",
                "host": "a.example",
                "sni": "a.example",
                "also": {
                    "check-2": {
                        "expect": 204,
                        "path": "/y",
                        "expect_digest": OK,
                        "host": "b.example",
                        "sni": "b.example",
                    }
                },
            },
        ),
        (
            (
                "SSL_GET {",
                "sni_name b.example",
                "enable_sni",
                "virtualhost a.example",
                "url { path /x",
                "}",
                "}",
            ),
            {**HTTP, "type": "https", "host": "a.example", "sni": "b.example"},
        ),
        (("SMTP_CHECK { }",), {"type": "tcp", "steps": smtp("smtpchecker.keepalived.org")}),
        (("SMTP_CHECK {", "helo_name lb.example", "}"), {"type": "tcp", "steps": smtp("lb.example")}),
        (("MISC_CHECK {", "misc_path '/usr/bin/nc -z 192.0.2.11 6443'", "}"), {"type": "tcp"}),
        (
            ("MISC_CHECK {", 'misc_path "/usr/bin/curl -k https://192.0.2.11:9443/a"', "user nobody", "}"),
            {"type": "https", "port": 9443, "path": "/a", "expect": "100-599"},
        ),
    ],
)
def test_what_is_asked(lines: tuple[str, ...], found: dict[str, Plain]):
    """Each asks the same as in keepalived; the innermost block that names a host counts."""
    assert asked(*lines) == found


@pytest.mark.parametrize(
    ("lines", "outer", "found"),
    [
        (("TCP_CHECK { }",), (), ("60s", "1s", "5s", 1, 2)),
        (("HTTP_GET {", "url { path /", "}", "}"), (), ("60s", "3s", "5s", 1, 2)),
        (
            ("MISC_CHECK {", "misc_path 'nc -z 192.0.2.11 6443'", "}"),
            ("delay_loop 8",),
            ("8s", None, "8s", 1, 1),
        ),
        (
            ("MISC_CHECK {", "misc_path 'nc -z -w 3 192.0.2.11 6443'", "misc_timeout 4", "}"),
            ("connect_timeout 2",),
            ("60s", None, "3s", 1, 1),
        ),
        (
            ("MISC_CHECK {", "misc_path 'nc -z -w 0 192.0.2.11 6443'", "misc_timeout 0", "retry 2", "}"),
            (),
            ("60s", "1s", "60s", 1, 3),
        ),
        (
            ("delay_loop 4", "TCP_CHECK {", "connect_timeout 1.5", "retry 0", "}"),
            ("delay_loop 9", "retry 4"),
            ("4s", None, "1500ms", 1, 1),
        ),
        (
            ("retry 4", "TCP_CHECK {", "delay_before_retry 0", "}"),
            ("delay_loop 5", "retry 3"),
            ("5s", "1ms", "5s", 1, 5),
        ),
        (("TCP_CHECK { delay_before_retry 5", "}"), ("delay_loop 5",), ("5s", None, "5s", 1, 2)),
        (("HTTP_GET {", "nb_get_retry 2", "url { path /", "}", "}"), (), ("60s", "3s", "5s", 1, 3)),
        (("TCP_CHECK {", "retry 5000", "}"), (), ("60s", "1s", "5s", 1, 1000)),
    ],
)
def test_how_often(lines: tuple[str, ...], outer: tuple[str, ...], found: tuple[Plain, ...]):
    """A server is down after one failure and its retries, and up after one good check."""
    assert times(*lines, outer=outer) == found


def test_no_checker_is_no_check():
    """Such a server is always up; where others are checked, it alone is not."""
    assert check(checked()) is False
    second = real_server("TCP_CHECK { }", address="192.0.2.12 6443")
    translation = translated(virtual_server("delay_loop 1", servers=f"{real_server()}\n{second}"))
    assert "check" not in pool(translation)
    servers = mapping(pool(translation), "servers")
    assert mapping(servers["192.0.2.11-6443"])["check"] is False
    assert mapping(servers["192.0.2.12-6443"], "check")["type"] == "tcp"


def test_servers_with_other_checks():
    """Each has its own, where they are not all alike."""
    second = real_server("TCP_CHECK { connect_port 81", "}", address="192.0.2.12 6443")
    translation = translated(virtual_server(servers=f"{real_server('TCP_CHECK { }')}\n{second}"))
    assert "check" not in pool(translation)
    servers = mapping(pool(translation), "servers")
    assert mapping(servers["192.0.2.12-6443"], "check")["port"] == 81


def test_several_checks_of_a_server():
    """All have to pass, each at its own address and port; those that have no own have the server's."""
    lines = (
        *("TCP_CHECK {", "connect_ip 192.0.2.9", "connect_port 81", "}"),
        *("TCP_CHECK {", "connect_port 82", "}"),
        "TCP_CHECK { }",
    )
    assert asked(*lines) == {
        "type": "tcp",
        "address": "192.0.2.9",
        "port": 81,
        "also": {
            "check-2": {"address": "192.0.2.11", "port": 82},
            "check-3": {"address": "192.0.2.11", "port": 6443},
        },
    }


def test_who_asks_connects():
    """A TCP_CHECK beside a check of the same port adds nothing, and none of its lines is kept."""
    lines = ("TCP_CHECK {", "connect_timeout 3", "}", "HTTP_GET {", "url { path /x", "}", "}")
    assert asked(*lines) == HTTP
    ignored = told(checked(*lines), I)
    assert [line for line, _, _ in ignored] == [7, 8, 9]
    assert "tests more" in ignored[0][2]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (("bindto 192.0.2.1", "connect_timeout 3"), "the address that the kernel chooses"),
        (("connect_timeout 30",), "connects within 5 s"),
        (("retry 5000",), "is limited to 999 here"),
        (
            ("connect_timeout 0", "delay_loop 0"),
            "must be more than 0: keepalived ignores it, and so does the appliance",
        ),
        (("nb_get_retry 3",), "is unknown here. Ignored, as in keepalived"),
        (("connect_port 0",), "keepalived ignores it"),
    ],
)
def test_what_changes(lines: tuple[str, ...], reason: str):
    """What differs is told, and nothing is refused."""
    translation = checked("TCP_CHECK {", *lines, "}")
    assert any(reason in why for _, _, why in told(translation, C))
    assert refusals(translation) == []


def test_what_a_command_becomes_is_told():
    """Nobody runs it; a certificate that it verified is not verified."""
    translation = checked("MISC_CHECK {", "misc_path 'curl -f https://192.0.2.11:6443/'", "}")
    [told_of] = [why for line, _, why in told(translation, C) if line > 4]
    assert told_of.startswith(
        "no command is run: the appliance checks port 6443 itself (`https`), and accepts any"
    )


@pytest.mark.parametrize(
    ("lines", "keyword", "reason"),
    [
        (("HTTP_GET {", "}"), "HTTP_GET", "has no `url { path ... }`"),
        (("HTTP_GET {", "url { }", "}"), "url", "has no `path`"),
        (("HTTP_GET {", *("url { path /", "}") * 18, "}"), "HTTP_GET", "at most 17 checks"),
        (("HTTP_GET {", "url { path x", "}", "}"), "url", "must be a path"),
        (("HTTP_GET {", "url {", "path /", "status_code 99", "}", "}"), "status_code", "must be a status"),
        (("HTTP_GET {", "url {", "path /", "status_code", "}", "}"), "status_code", "needs a status"),
        (("HTTP_GET {", "url {", "path /", "digest 9b3a0c", "}", "}"), "digest", "an MD5 digest"),
        (("HTTP_GET {", "url {", "path /", "regex ok", "}", "}"), "regex", "`expect_body`"),
        (("HTTP_GET {", "url {", "path /", "virtualhost a/b", "}", "}"), "virtualhost", "a/b"),
        (("TCP_CHECK {", "fwmark 3", "}"), "fwmark", "no packet mark"),
        (("TCP_CHECK { }", "TCP_CHECK {", "connect_port 81", "retry 3", "}"), "TCP_CHECK", "the same times"),
        (("SMTP_CHECK {", "helo_name 'a", "}"), "helo_name", "must be a name of a host"),
        (("DNS_CHECK { }",), "DNS_CHECK", "is not supported: write TCP_CHECK"),
        (("MISC_CHECK { }",), "MISC_CHECK", "has no `misc_path`"),
        (("MISC_CHECK {", "misc_path", "}"), "misc_path", "needs a command"),
        (("MISC_CHECK {", "misc_path /etc/keepalived/check.sh", "}"), "misc_path", "write HTTP_GET"),
        (("MISC_CHECK {", "misc_path /c", "misc_dynamic", "}"), "misc_dynamic", "`appliance weight`"),
        (
            ("SSL_GET {", "enable_sni", "virtualhost 192.0.2.1:80", "url {", "path /", "}", "}"),
            "virtualhost",
            "is sent in the TLS handshake",
        ),
    ],
)
def test_a_check_that_cannot_be_made_leaves_all_out(lines: tuple[str, ...], keyword: str, reason: str):
    """A server that is checked less would be used where keepalived would not use it."""
    translation = checked(*lines)
    [refused] = refusals(translation)
    assert (refused.place.line, refused.place.column) == (1, 1)
    assert f"because of its `{keyword}`, line " in (refused.reason or "")
    assert reason in (refused.reason or "")
    assert translation.root.value == {}
