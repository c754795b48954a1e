"""Checks that talk: `tcp-check send|expect|comment`, and the options of protocols, as our steps."""

import pytest
from support.translation.haproxy_files import TIMES, backend, read

from appliance.model.loading.loading import load
from appliance.translation.import_result import import_result
from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure


def steps(*lines: str, option: str = "option tcp-check") -> object:
    """Return the steps of the check, which every reader of our files takes."""
    found = backend(option, *lines)
    assert found.refused == []
    assert [each.text for each in found.found.lines if each.outcome is not Outcome.KEPT] == []
    loaded = load(import_result([found.found]).yaml, source="a.yaml", number=1)
    assert loaded.snapshot is not None, loaded.errors
    tree = found.tree
    assert isinstance(tree, dict)
    return tree["pools"]["b"]["check"].get("steps")  # type: ignore[index, call-overload, union-attr]  # plain values


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["tcp-check send PING\\r\\n"], [{"send": "PING\r\n"}]),
        (["tcp-check send-lf QUIT"], [{"send": "QUIT"}]),
        (["tcp-check send-binary 50494e47"], [{"send_binary": "50494e47"}]),
        (["tcp-check send \\x01a"], [{"send_binary": "0161"}]),
        (["tcp-check expect string +PONG"], [{"expect": "+PONG"}]),
        (["tcp-check expect string a\\ b"], [{"expect": "a b"}]),
        (["tcp-check expect string \\x02"], [{"expect_binary": "02"}]),
        (["tcp-check expect rstring ^220"], [{"expect_rstring": "^220"}]),
        (["tcp-check expect binary 2b504F"], [{"expect_binary": "2b504F"}]),
        (["tcp-check expect ! string bad"], [{"expect": "bad", "negate": True}]),
        (["tcp-check expect !rstring ^E"], [{"expect_rstring": "^E", "negate": True}]),
        (["tcp-check expect min-recv 5 string a"], [{"expect": "a", "min_recv": 5}]),
        (["tcp-check expect min-recv 0 string a"], [{"expect": "a", "min_recv": 1}]),
        (["tcp-check expect min-recv -1 string a"], [{"expect": "a"}]),
        (["tcp-check expect comment hello string a"], [{"expect": "a", "comment": "hello"}]),
        (["tcp-check expect string a comment hello"], [{"expect": "a", "comment": "hello"}]),
        (["tcp-check expect comment '' string a"], [{"expect": "a"}]),
        (
            ["tcp-check expect error-status L7STS on-error bad status-code int(1) string a"],
            [{"expect": "a"}],
        ),
        (["tcp-check comment one", "tcp-check expect string a"], [{"expect": "a", "comment": "one"}]),
        (
            ["tcp-check comment one", "tcp-check expect comment two string a", "tcp-check expect string b"],
            [{"expect": "a", "comment": "two"}, {"expect": "b"}],
        ),
        (
            [
                "tcp-check connect",
                "tcp-check send a",
                "tcp-check expect string b",
                "tcp-check expect string c",
            ],
            [{"send": "a", "expect": "b"}, {"expect": "c"}],
        ),
        (
            ["tcp-check send a", "tcp-check send b comment c", "tcp-check expect string d"],
            [{"send": "a"}, {"send": "b", "comment": "c"}, {"expect": "d"}],
        ),
        ([f"tcp-check comment {'x' * 99}", "tcp-check send a"], [{"send": "a", "comment": "x" * 60}]),
    ],
)
def test_rules(lines: list[str], expected: object):
    """A question and what is expected of its answer are one step; each line is kept."""
    assert steps(*lines) == expected


def test_no_rules_are_a_connect():
    """`option tcp-check` alone, and with a connect."""
    assert steps() is None
    assert steps("tcp-check connect") is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("tcp-check send", "a value is missing"),
        ("tcp-check send ''", "a value is missing"),
        (f"tcp-check send {'x' * 1025}", "the text must have 1 to 1024 bytes"),
        ("tcp-check send-lf %[src]", "has no variables"),
        ("tcp-check send-binary 5g", "must be pairs of hexadecimal digits"),
        ("tcp-check send-binary-lf 50", "checks have no variables"),
        ("tcp-check set-var(check.a) int(1)", "is unknown"),
        ("tcp-check expect rbinary ^52", "`rbinary` is not supported"),
        ("tcp-check expect", "is not supported"),
        ("tcp-check expect string", "a value is missing"),
        ("tcp-check expect rstring (?=a)", "is not understood"),
        ("tcp-check expect min-recv x string a", "`x` is not a number"),
        ("tcp-check expect min-recv 16385 string a", "16384"),
        ("tcp-check expect ok-status L7OKC string a", "drain it with `appliance drain`"),
        ("option mysql-check user", "the user's name is missing"),
        ("option mysql-check haproxy", "the user's name is missing"),
        ("option pgsql-check", "the user's name is missing"),
        (f"option pgsql-check user {'x' * 201}", "the user's name is missing"),
        ("option spop-check", "this check is not supported"),
        ("option external-check", "there is no `external-check command` to run"),
    ],
)
def test_what_cannot_be_said(line: str, reason: str):
    """Each has its reason."""
    assert reason in " ".join(backend("option tcp-check", line).refused)


def test_a_check_has_so_many_steps():
    """As many as our own file may have."""
    assert steps(*["tcp-check expect string a"] * 32) is not None
    assert "more than 32 steps" in backend(*["tcp-check expect string a"] * 33).refused[0]


def test_a_connection_after_other_rules_is_refused():
    """HAProxy refuses it too: the first rule is a connection, or none is."""
    assert "the first rule" in backend("tcp-check send a", "tcp-check connect port 1").refused[0]


def test_rules_of_defaults():
    """They hold until a section has one of its own, and only where `option tcp-check` asks for them."""
    text = (
        f"{TIMES}  option tcp-check\n  tcp-check comment c\n  tcp-check expect string a\n"
        "listen b\n  bind *:1\n  server s 10.0.0.1:1 check\n"
        "listen c\n  bind *:2\n  tcp-check send q\n  server s 10.0.0.1:1 check\n"
        "listen d\n  bind *:3\n  option redis-check\n  tcp-check send q\n  server s 10.0.0.1:1 check\n"
    )
    found = read(text)
    checks = [found.pool(name).check for name in "bcd"]
    talking = [check.steps or () for check in checks if check]
    sent = [[(each.send[:1], each.expect[:5]) for each in some] for some in talking]
    assert sent == [[("", "a")], [("q", "")], [("*", "+PONG")]]
    assert [each.outcome for each in found.lines("tcp-check send")] == [Outcome.KEPT, Outcome.IGNORED]


def test_protocols():
    """What HAProxy sends is sent; `tests/net/probing/test_talking.py` has the real one beside it."""
    assert steps(option="option redis-check") == [
        {"send": "*1\r\n$4\r\nPING\r\n", "expect": "+PONG\r\n", "min_recv": 7}
    ]
    mail = steps(option="option smtpchk")
    assert isinstance(mail, list)
    assert [each["send"] for each in mail if "send" in each] == ["HELO localhost\r\n", "QUIT\r\n"]
    named = steps(option="option smtpchk ehlo lb.example.com")
    assert isinstance(named, list)
    assert named[2]["send"] == "EHLO lb.example.com\r\n"
    other = steps(option="option smtpchk LHLO lb.example.com")
    assert isinstance(other, list)
    assert other[2]["send"] == "HELO lb.example.com\r\n"
    postgres = steps(option="option pgsql-check user haproxy")
    assert isinstance(postgres, list)
    assert bytes.fromhex(postgres[0]["send_binary"]) == b"\0\0\0\x16\0\3\0\0user\0haproxy\0\0"
    ldap = steps(option="option ldap-check")
    assert isinstance(ldap, list)
    assert ldap[0]["send_binary"] == "300c020101600702010304008000"


@pytest.mark.parametrize(
    ("option", "sent"),
    [
        ("option mysql-check", []),
        (
            "option mysql-check user lb",
            [b"\x24\0\0\1\0\x82\0\0\0\x80\0\1\x21" + bytes(23) + b"lb\0\0\1\0\0\0\1"],
        ),
        ("option mysql-check user lb pre-41", [b"\x09\0\0\1\0\x80\0\0\1lb\0\0\1\0\0\0\1"]),
    ],
)
def test_mysql(option: str, sent: list[bytes]):
    """With a user the login and the farewell are one message; without one the greeting is enough."""
    found = steps(option=option)
    assert isinstance(found, list)
    assert [bytes.fromhex(each["send_binary"]) for each in found if "send_binary" in each] == sent
    assert len(found) == len(sent) + 1


def test_tls_is_around_it():
    """`check-ssl` has the same said in TLS."""
    pool = backend("option redis-check", server="server s 10.0.0.1:1 check check-ssl verify none").pool()
    assert pool.check is not None
    assert pool.check.type == "tls"
    assert pool.check.steps
