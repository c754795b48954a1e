"""Servers without a port of their own, behind several ports: each port has a frontend and a pool."""

import pytest
from support.translation.haproxy_files import TIMES, Read, read

from appliance.translation.haproxy.building.followed_ports import MOST_PORTS, MOST_SERVERS
from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure

Served = dict[str, tuple[list[str], list[str]]]


def served(found: Read) -> Served:
    """Return each frontend's binds, and the addresses of the servers that its clients come to."""
    groups = [each.frontends for each in (found.config.api, found.config.ingress) if each]
    return {
        name: (
            [str(each) for each in section.bind],
            [str(each.address) for each in found.config.pools[section.pool or ""].servers.by_name.values()],
        )
        for frontends in groups
        for name, section in frontends.items()
    }


def test_each_port_leads_to_the_same_one():
    """As with HAProxy, who comes to a port gets to that port of a server, and with an offset behind it."""
    found = read(
        f"{TIMES}listen ftp\n  bind 10.0.0.9:1001-1002,10.0.0.8:1001\n  maxconn 7\n"
        "  server s 10.0.0.1 check port 21\n  server t 10.0.0.2:+1000\n  server u 10.0.0.3:21\n"
    )
    assert found.refused == []
    assert served(found) == {
        "ftp-1001": (
            ["10.0.0.9:1001", "10.0.0.8:1001"],
            ["10.0.0.1:1001", "10.0.0.2:2001", "10.0.0.3:21"],
        ),
        "ftp-1002": (["10.0.0.9:1002"], ["10.0.0.1:1002", "10.0.0.2:2002", "10.0.0.3:21"]),
    }
    assert [found.outcome(f"server {name}") for name in "stu"] == [
        Outcome.CHANGED,
        Outcome.CHANGED,
        Outcome.KEPT,
    ]
    assert "`ftp-1001` to `ftp-1002`" in str(found.line("server s").reason)
    assert found.outcome("bind") is Outcome.KEPT
    assert [each.max_connections for each in found.config.api.frontends.values()] == [None, None]  # type: ignore[union-attr]  # it is there
    assert found.config.defaults.max_connections == 7


def test_frontends_that_share_servers():
    """A port of one frontend and a port of another one each lead to themselves."""
    found = read(
        f"{TIMES}frontend a\n  bind *:1\n  tcp-request connection reject unless {{ src 10.0.0.0/8 }}\n"
        "  default_backend a\n"
        "frontend b\n  bind *:2-3\n  default_backend a\nbackend a\n  server s 10.0.0.1\n"
        "frontend off\n  bind *:4\n  default_backend a\n  disabled\n"
        "frontend a-1\n  bind *:5\n  default_backend other\nbackend other\n  server s 10.0.0.1\n"
    )
    assert found.refused == []
    assert served(found) == {
        "a-1-2": (["0.0.0.0:1"], ["10.0.0.1:1"]),
        "b-2": (["0.0.0.0:2"], ["10.0.0.1:2"]),
        "b-3": (["0.0.0.0:3"], ["10.0.0.1:3"]),
        "a-1": (["0.0.0.0:5"], ["10.0.0.1:5"]),
    }
    assert [found.frontend(name).allow for name in ("a-1-2", "b-2")] == [("10.0.0.0/8",), ()]


def test_a_listen_that_others_lead_to():
    """Its servers are there for its own ports and for those of others; it listens on its own alone."""
    found = read(
        f"{TIMES}listen l\n  bind *:1-2\n  server s 10.0.0.1\nfrontend f\n  bind *:3\n  default_backend l\n"
        "listen m\n  bind *:4\n  server t 10.0.0.2:1\n  use_backend l\n"
        "frontend g\n  bind *:5\n  default_backend m\n"
    )
    assert found.refused == []
    assert served(found) == {
        "l-1": (["0.0.0.0:1"], ["10.0.0.1:1"]),
        "l-2": (["0.0.0.0:2"], ["10.0.0.1:2"]),
        "f-3": (["0.0.0.0:3"], ["10.0.0.1:3"]),
        "m-4": (["0.0.0.0:4"], ["10.0.0.1:4"]),
        "g": (["0.0.0.0:5"], ["10.0.0.2:1"]),
    }


def test_a_rule_by_port_leads_to_it():
    """Where a condition chooses such a backend for some ports, those have its servers, and others do not."""
    found = read(
        f"{TIMES}backend l\n  server s 10.0.0.1\nbackend m\n  server s 10.0.0.2:9\n"
        "frontend f\n  bind *:1-2\n  use_backend l if { dst_port 1 }\n  default_backend m\n"
    )
    assert found.refused == []
    assert served(found) == {
        "f-1": (["0.0.0.0:1"], ["10.0.0.1:1"]),
        "f-2": (["0.0.0.0:2"], ["10.0.0.2:9"]),
    }


def test_a_port_that_an_offset_makes_of_nothing():
    """It is refused: the server has no such port."""
    found = read(f"{TIMES}listen l\n  bind *:1-2\n  server s 10.0.0.1:-1\n  server t 10.0.0.2:1\n")
    assert [each.split(": ", 1)[1][:27] for each in found.refused] == ["a server has one port, whic"]
    assert found.line("server s").outcome is Outcome.REFUSED


@pytest.mark.parametrize(
    "text",
    [
        f"listen l\n  bind *:1-{MOST_PORTS + 1}\n  server s 10.0.0.1\n",
        f"listen l\n  bind *:1-{MOST_PORTS}\n"
        + "".join(f"  server s{at} 10.0.0.1\n" for at in range(MOST_SERVERS // MOST_PORTS + 1)),
    ],
)
def test_ports_that_are_too_many(text: str):
    """Each is a pool with checks of its own: what would be thousands is refused, and says what to write."""
    found = read(TIMES + text)
    assert "a server has one port, whichever port the client used" in found.refused[0]
    assert list(found.config.pools) == ["l"]


def test_sections_that_read_http_are_refused_once():
    """They are not served at any port."""
    found = read(f"{TIMES}listen l\n  mode http\n  bind *:1-9\n  server s 10.0.0.1\n")
    assert len(found.refused) == 1
    front = read(
        f"{TIMES}frontend f\n  mode http\n  bind *:1-9\n  default_backend b\nbackend b\n  server s 10.0.0.1\n"
    )
    assert len(front.refused) == 2


def test_proposals_are_made_once():
    """What is proposed of a backend is not proposed for each of its ports."""
    found = read(f"{TIMES}listen l\n  bind *:80-90\n  server s 10.0.0.1 check port 9\n")
    assert (found.refused, found.proposals) == ([], ["on-down"])
