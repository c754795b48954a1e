"""Which backend HAProxy gives a client by its network, and the appliance with what `import` made of it."""

from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
import yaml
from support.network.ports import free_port
from support.peers.haproxy import HAProxy
from support.peers.named_server import NamedServer, chosen
from support.supervisor.appliance import Appliance
from support.translation.haproxy_files import Files
from support.values.client_hellos import openssl_hello

from appliance.translation.haproxy.reader import translate
from appliance.translation.import_result import import_result

pytestmark = [pytest.mark.programs, pytest.mark.needs("haproxy")]

_BACKENDS: Final = ("one", "two", "three", "rest")
_CLIENTS: Final = ("127.0.0.1", "127.0.1.1", "127.1.0.1", "127.1.1.1", "::1")

_RULES: Final = {
    "plain": ("one if { src 127.0.1.0/24 }", "two if { src 127.0.0.0/16 }", "three if { src ::1 }"),
    "or": ("one if { src 127.0.1.1 ::1 } || { src 127.1.1.1 }",),
    "named": ("two if far", "one if near"),
    "listed": ("one if { src -f {list} }", "two unless near"),
    "not": ("one if !near", "two if { src 127.0.1.0/24 127.1.1.1 }"),
    "twice": ("one if !near !{ src ::1 }", "two unless { src 127.0.1.1/24 }"),
    "every": ("one if far", "two if { src ::/0 }"),
    "hidden": ("one if near", "two if { src 127.0.1.1 }", "three"),
}
_ACLS: Final = ("acl near src 127.0.0.0/16", "acl far src 127.1.0.0/24", "acl far src -f {list}")
_ROUTED: Final = {
    "plain": ("two", "one", "rest", "rest", "three"),
    "or": ("rest", "one", "rest", "one", "one"),
    "named": ("one", "two", "two", "two", "rest"),
    "listed": ("rest", "one", "two", "one", "two"),
    "not": ("rest", "two", "one", "one", "one"),
    "twice": ("two", "rest", "one", "one", "two"),
    "every": ("two", "one", "one", "one", "two"),
    "hidden": ("one", "one", "three", "three", "three"),
}
"""The backends of the clients, in their order."""


def _text(ports: dict[str, int], servers: dict[str, int], networks: Path) -> str:
    fronts = ""
    for name, rules in _RULES.items():
        lines = (*_ACLS, *(f"use_backend {each}" for each in rules))
        fronts += f"frontend {name}\n  bind :::{ports[name]} v4v6\n"
        fronts += "".join(f"  {each}\n" for each in lines) + "  default_backend rest\n"
    backends = "\n".join(f"backend {name}\n  server s 127.0.0.1:{port}" for name, port in servers.items())
    return f"""
global
  stats socket {{control}}
defaults
  mode tcp
  timeout connect 5s
  timeout client 1m
  timeout server 1m
frontend names
  bind :::{ports["names"]} v4v6
  tcp-request inspect-delay 30s
  tcp-request content accept if {{ req.ssl_hello_type 1 }}
  use_backend one if {{ src 127.0.1.1 }}
  use_backend two if {{ req.ssl_sni -i x.example.com }}
  default_backend rest
frontend closed
  bind :::{ports["closed"]} v4v6
  use_backend one if {{ src 127.0.1.1 }}
frontend but-some
  bind :::{ports["but-some"]} v4v6
  use_backend one unless {{ src 127.0.1.1 ::1 }}
{fronts}{backends}
""".replace("{list}", str(networks))


@pytest.mark.promise("docs/foreign-files.md", "`use_backend` by `src` leads as HAProxy's does")
def test_the_same_backends_are_chosen(tmp_path: Path):
    """The same file and the same clients, of both versions of IP on one address: the same servers."""
    networks = tmp_path / "networks"
    networks.write_text("# far away\n127.1.1.0/24\n\n127.0.1.1\n")
    with ExitStack() as stack:
        servers = {name: NamedServer(name) for name in _BACKENDS}
        for each in servers.values():
            stack.callback(each.close)
        addresses = {name: each.server_address[1] for name, each in servers.items()}
        names = (*_RULES, "names", "closed", "but-some")
        theirs, ours = ({name: free_port() for name in names} for _ in range(2))
        stack.enter_context(HAProxy(_text(theirs, addresses, networks)))
        read = Files({str(networks): networks.read_bytes()})
        text = _text(ours, addresses, networks)
        imported = import_result([translate(text, source="haproxy.cfg", environment={}, read=read)])
        assert imported.ok, imported.problems
        stack.enter_context(Appliance(yaml.safe_load(imported.yaml)))

        def backends(frontend: str, data: bytes = b"") -> dict[str, tuple[str, ...]]:
            found: dict[str, tuple[str, ...]] = {}
            for side, ports in (("haproxy", theirs), ("ours", ours)):
                hosts = [(each, "::1" if ":" in each else "127.0.0.1") for each in _CLIENTS]
                found[side] = tuple(
                    chosen(ports[frontend], data, step=100, host=host, source=source)[0]
                    for source, host in hosts
                )
            return found

        for frontend, wanted in _ROUTED.items():
            assert backends(frontend) == {"haproxy": wanted, "ours": wanted}, frontend
        one, none = ("", "one", "", "", ""), ("one", "", "one", "one", "")
        assert backends("closed") == {"haproxy": one, "ours": one}
        assert backends("but-some") == {"haproxy": none, "ours": none}
        named, other = ("two", "one", "two", "two", "two"), ("rest", "one", "rest", "rest", "rest")
        hello = openssl_hello("x.example.com")
        assert backends("names", hello) == {"haproxy": named, "ours": named}
        assert backends("names", b"SSH-2.0-x\r\n") == {"haproxy": other, "ours": other}
