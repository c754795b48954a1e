"""`bind` with its options, and the addresses that come out."""

import pytest
from support.translation.haproxy_files import TIMES, frontend, read

from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure


def addresses(*binds: str) -> list[str]:
    """Return the addresses of a frontend with these binds."""
    found = frontend(*(f"bind {each}" for each in binds), bind="")
    assert found.refused == []
    return [str(each) for each in found.frontend().bind]


@pytest.mark.parametrize(
    ("binds", "expected"),
    [
        (["*:6443"], ["0.0.0.0:6443"]),
        ([":::9445 v4v6"], ["[::]:9445"]),
        ([":::9445"], ["[::]:9445"]),
        (["*:6443", ":::6443"], ["[::]:6443"]),
        (["*:6443", ":::6443 v6only"], ["[::]:6443"]),
        (["2001:db8::1:6443 v6only"], ["[2001:db8::1]:6443"]),
        (["*:6443,10.0.0.1:7443"], ["0.0.0.0:6443", "10.0.0.1:7443"]),
        (["*:7001-7003"], ["0.0.0.0:7001", "0.0.0.0:7002", "0.0.0.0:7003"]),
        (["*:6443", "*:6443"], ["0.0.0.0:6443"]),
        (["*:6443 name main defer-accept"], ["0.0.0.0:6443"]),
        (["10.0.0.1:80", "*:80", "10.0.0.1:81"], ["0.0.0.0:80", "10.0.0.1:81"]),
        (["2001:db8::1:80,10.0.0.1:80", ":::80"], ["[::]:80"]),
        (["2001:db8::1:80,10.0.0.1:80", ":::80 v6only", "*:80"], ["[::]:80"]),
        (["2001:db8::1:80,localhost:80", "*:80"], ["[2001:db8::1]:80", "localhost:80", "0.0.0.0:80"]),
    ],
)
def test_addresses(binds: list[str], expected: list[str]):
    """`::` accepts IPv4 too, and stands for both families where a frontend has both."""
    assert addresses(*binds) == expected


def test_ipv6_alone_on_every_address():
    """There is no such bind: it would open the port for IPv4, too."""
    found = frontend(bind="bind :::443 v6only")
    assert found.refused[0].startswith("6:8: `::` accepts IPv4 too")
    assert found.config.ingress is None
    beside = frontend("bind :::443 v6only", "bind 10.0.0.1:443", bind="")
    assert beside.config.ingress is not None
    assert [str(each) for each in beside.frontend().bind] == ["10.0.0.1:443"]


def test_an_address_that_another_one_takes_too():
    """It is left out, and the report says so; the same one again is nothing new."""
    found = frontend("bind 10.0.0.1:80", "bind *:80", "bind *:80", bind="")
    assert [each.outcome for each in found.lines("bind")] == [Outcome.CHANGED, Outcome.KEPT, Outcome.KEPT]
    assert "`0.0.0.0:80` of this section" in str(found.lines("bind")[0].reason)


def test_an_address_that_another_section_has():
    """HAProxy would give connections to either of them: one line says so, and the first has all."""
    found = read(
        f"{TIMES}listen a\n  bind 10.0.0.1:1-2\n  server s 10.0.0.3:1\n"
        "listen b\n  bind *:9,10.0.0.1:2\n  server s 10.0.0.4:1\n"
        "listen c\n  bind 10.0.0.1:2\n  server s 10.0.0.5:1\n  disabled\n"
    )
    assert [str(each) for each in found.frontend("a").bind] == ["10.0.0.1:1", "10.0.0.1:2"]
    told = (
        "9:8: line 6 binds `10.0.0.1:2` already, and in HAProxy chance decides which section "
        "gets a connection: remove one of them"
    )
    assert found.refused == [told]


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ("name x", Outcome.IGNORED),
        ("backlog 100", Outcome.IGNORED),
        ("mode 600", Outcome.IGNORED),
        ("crt /etc/x.pem", Outcome.IGNORED),
        ("strict-sni", Outcome.IGNORED),
        ("ssl", Outcome.REFUSED),
        ("accept-proxy", Outcome.REFUSED),
        ("interface eth0", Outcome.REFUSED),
        ("transparent", Outcome.REFUSED),
        ("maxconn 10", Outcome.REFUSED),
        ("maxconn", Outcome.REFUSED),
        ("bogus", Outcome.REFUSED),
        ("tcp-ut x", Outcome.REFUSED),
    ],
)
def test_options(words: str, outcome: Outcome):
    """Each has its outcome at its own place."""
    read_so = frontend(bind=f"bind *:6443 {words}")
    found = read_so.line("bind")
    assert found.outcome is outcome
    assert found.place.column >= 15
    assert (read_so.config.api is None) is (outcome is Outcome.REFUSED)


def test_a_listener_without_what_is_refused_of_it_is_left_out():
    """TLS would be ended there: nobody is served in the clear instead, and the other listeners serve."""
    found = frontend("bind :443 ssl crt /etc/x.pem", "bind :80", bind="")
    assert len(found.refused) == 1
    assert [str(each) for each in found.frontend().bind] == ["0.0.0.0:80"]
    alone = frontend(bind="bind :443 ssl crt /etc/x.pem")
    assert alone.config.ingress is None
    assert alone.outcome("default_backend") is Outcome.IGNORED
    page = read(f"{TIMES}listen s\n  mode http\n  bind :443 ssl crt /etc/x.pem\n  stats enable\n")
    assert page.config.stats is None


def test_unknown_options():
    """The nearest is named, and the words behind it are judged all the same."""
    found = frontend(bind="bind *:6443 v4v7 qqqq nam name x")
    assert [each.split(": ", 1)[1] for each in found.refused] == [
        "`v4v7` is unknown: did you mean `v4v6`?",
        "`qqqq` is unknown",
        "`nam` is unknown: did you mean `name`?",
    ]


def test_unacknowledged_bytes():
    """`tcp-ut` is for the clients of the frontend; 0 is off, as it is anyway."""
    assert frontend(bind="bind *:6443 tcp-ut 30s").frontend().tcp_user_timeout == 30.0
    assert frontend(bind="bind *:6443 tcp-ut 0").frontend().tcp_user_timeout is None


def test_addresses_of_a_file_have_a_limit():
    """Each is a socket in every worker."""
    text = "".join(f"listen l{at}\n  bind *:1-1024\n" for at in range(12))
    [*_, refused] = read(text).refused
    assert refused.endswith("the file listens on more than 10000 addresses")


def test_what_is_no_address():
    """Then nobody can connect, and the frontend is left out."""
    found = frontend(bind="bind 10.0.0.1")
    assert found.line("bind").outcome is Outcome.REFUSED
    assert found.outcome("default_backend") is Outcome.IGNORED
    assert found.config.api is None


def test_an_address_behind_the_name():
    """HAProxy 1 took it, and names that were there several times."""
    found = read(
        f"{TIMES}frontend main *:80\n  default_backend b\nfrontend main *:443\n  default_backend b\n"
        "backend b\n  server s 10.0.0.1:80\n"
    )
    assert found.config.ingress is not None
    assert list(found.config.ingress.frontends) == ["main", "main-2"]
    assert found.line("frontend main *:443").outcome is Outcome.CHANGED
    assert "a value is missing" in frontend(bind="bind").refused[0]
