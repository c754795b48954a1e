"""Beside the real HAProxy, with the same file: who may connect, and what answers where the statistics are."""

import socket
from http.client import HTTPConnection
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import pytest
from support.network.ports import free_ports
from support.peers.backend import Backend
from support.peers.haproxy import HAProxy
from support.stats.asked_pages import asked
from support.translation.haproxy_files import TIMES, Read, read

from appliance.core.balancing.access_lists import NetworkSet
from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.snapshot import Stats

pytestmark = [pytest.mark.programs, pytest.mark.needs("haproxy")]

_CONTROL: Final = "global\n  stats socket {control}\n"
_CLIENTS: Final = ("127.0.0.1", "127.0.1.1", "127.1.0.1", "127.1.1.1")

_A, _B, _C = "127.0.0.0/16", "127.0.1.0/24", "127.1.0.1"
_RULES: Final = (
    ((f"connection reject if {{ src {_B} }}",), ()),
    ((f"connection reject unless {{ src {_A} }}",), ()),
    ((f"connection reject if !{{ src {_B} }} !{{ src {_C} }}",), ()),
    ((f"connection accept if {{ src {_B} }}", "connection reject"), ()),
    ((f"connection accept if !{{ src {_B} }}", "connection reject"), ()),
    ((f"connection reject if !{{ src {_A} }}", f"connection reject if {{ src {_B} }}"), ()),
    ((f"connection accept if {{ src {_B} }}", f"session reject if {{ src {_B} }}"), ()),
    ((f"content reject if !{{ src {_A} {_C} }}",), (f"content reject if {{ src {_C} }}",)),
    ((f"content accept if {{ src {_C} }}", "content reject"), ()),
    ((), (f"content accept if {{ src {_A} }}", "content reject")),
    (("connection reject if { src -f {list} }",), ()),
    ((f"connection reject unless {{ src -m ip -n -f {{list}} -- {_C} }}",), ()),
    (("connection silent-drop if { src 127.0.1.9/24 }",), ()),
    (("connection reject if { src ::/0 }",), ()),
    (("connection reject unless { src ::/0 }",), ()),
)
"""Rules of a frontend and of its backend."""


def _file(ports: list[int], server: int, networks: Path) -> str:
    sections = (
        f"frontend f{at}\n  bind 127.0.0.1:{port}\n{_lines(front)}  default_backend b{at}\n"
        f"backend b{at}\n{_lines(back)}  server s 127.0.0.1:{server}\n"
        for at, (port, (front, back)) in enumerate(zip(ports, _RULES, strict=True))
    )
    return _CONTROL + TIMES + "".join(sections).replace("{list}", str(networks))


def _lines(rules: tuple[str, ...]) -> str:
    return "".join(f"  tcp-request {each}\n" for each in rules)


def _served(port: int, client: str) -> bool:
    """Tell whether HAProxy passes bytes on for a client; `silent-drop` lets nobody know."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2.0, source_address=(client, 0)) as asking:
            asking.sendall(b"line 1\n")
            return asking.recv(64) != b""
    except OSError:
        return False


def _admits(found: Read, name: str, client: str) -> bool:
    section, packed = found.frontend(name), ip_address(client).packed
    return (not section.allow or packed in NetworkSet(section.allow)) and packed not in NetworkSet(
        section.deny
    )


@pytest.mark.promise("docs/foreign-files.md", "the same clients may connect as with HAProxy")
def test_the_same_clients_may_connect(tmp_path: Path):
    """Each list lets in whom HAProxy lets in, by its rules in frontends and backends."""
    networks = tmp_path / "networks"
    networks.write_text("# office\n\n  127.0.1.0/24\n127.1.1.1\n")
    ports = free_ports(len(_RULES))
    with Backend("s") as server:
        text = _file(ports, server.port, networks)
        found = read(text, files={str(networks): networks.read_bytes()})
        assert found.refused == []
        with HAProxy(text):
            for at, port in enumerate(ports):
                theirs = {each: _served(port, each) for each in _CLIENTS}
                assert theirs == {each: _admits(found, f"f{at}", each) for each in _CLIENTS}, _RULES[at]


_PAGES: Final = (
    ("stats enable",),
    ("stats uri /",),
    ("stats uri /lb?stats", "stats auth a:b"),
    ("stats enable", "monitor-uri /healthz"),
    ("stats uri /", "monitor-uri /healthz", "stats auth a:b"),
    ("stats uri /stats", "http-request deny if { src 127.0.0.0/8 }"),
)
_TARGETS: Final = (
    "/haproxy?stats",
    "/haproxy?stats;csv",
    "/lb?stats",
    "/lb?stats;csv",
    "/stats;csv",
    "/healthz",
)


def _theirs(port: int, target: str) -> tuple[int, bool]:
    client = HTTPConnection("127.0.0.1", port, timeout=10)
    client.request("GET", target)
    answer = client.getresponse()
    text = answer.read().decode()
    client.close()
    return answer.status, text.startswith("# pxname")


@pytest.mark.promise("docs/foreign-files.md", "statistics are where HAProxy's are")
@pytest.mark.parametrize("lines", _PAGES)
def test_statistics_answer_where_haproxys_do(lines: tuple[str, ...], tmp_path: Path):
    """What HAProxy shows is shown there, in the same form; what it keeps back nobody sees."""
    [port] = free_ports(1)
    body = "".join(f"  {each}\n" for each in lines)
    text = f"{_CONTROL}{TIMES}  mode http\nlisten s\n  bind 127.0.0.1:{port}\n{body}"
    found = read(text).config.stats
    assert found is not None
    assert (found.bind.host, found.bind.port) == ("127.0.0.1", port)
    ours = Stats(
        bind=Bind(host=found.bind.host, port=port),
        paths=found.uri,
        respond=found.respond,
        user=found.auth.user if found.auth else None,
        password=found.auth.password if found.auth else None,
    )
    denied = "127.0.0.0/8" in found.deny
    with HAProxy(text):
        for target in _TARGETS:
            status, is_csv = _theirs(port, target)
            answer = asked(tmp_path, target, ours)
            if status in {200, 401}:
                assert (answer[0], answer[2].startswith("# pxname")) == (status, is_csv), target
            assert denied is (status == 403)
