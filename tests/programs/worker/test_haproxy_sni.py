"""Which backend HAProxy gives a client by server name, and the appliance with what `import` made of it."""

from contextlib import ExitStack
from typing import Final

import pytest
import yaml
from support.network.ports import free_port
from support.peers.haproxy import HAProxy
from support.peers.named_server import NamedServer, chosen
from support.supervisor.appliance import Appliance
from support.translation.haproxy_files import NO_FILES
from support.values.client_hellos import openssl_hello

from appliance.translation.haproxy.reader import translate
from appliance.translation.import_result import import_result

pytestmark = [pytest.mark.programs, pytest.mark.needs("haproxy")]

_BACKENDS: Final = ("one", "two", "three", "rest")
_NAMES: Final = (
    "api.example.com",
    "API.Example.com",
    "a.apps.example.com",
    "a.b.apps.example.com",
    "apps.example.com",
    "db7.example.com",
    "db.example.com",
    "web-1.example.org",
    "beta.example.org",
    "alphabeta.example.org",
    "mail.example.net",
    None,
)
_EXPECTED: Final = {
    "names": ("one", "one", "two", "two", "rest", "three", "rest", "three", "three", "three", "one", "rest"),
    "other": ("one", "one", "two", "two", "rest", "three", "rest", "three", "two", "three", "one", "rest"),
    "closed": ("one", "one", *[""] * 10),
}
_FRONTENDS: Final = (*_EXPECTED, "soon")


def _text(ports: dict[str, int], servers: dict[str, int]) -> str:
    """Return a haproxy.cfg that leads by server name and by port, in an order that matters."""
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
  bind 127.0.0.1:{ports["names"]}
  bind 127.0.0.1:{ports["other"]}
  tcp-request inspect-delay 30s
  tcp-request content accept if {{ req.ssl_hello_type 1 }}
  acl api req.ssl_sni -i api.example.com
  acl api req.ssl_sni -i mail.example.net
  acl hello req_ssl_hello_type 1
  use_backend two if {{ dst_port {ports["other"]} }} {{ req.ssl_sni -i -m beg beta }}
  use_backend one if api hello
  use_backend two if {{ req_ssl_sni -i -m end .apps.example.com }}
  use_backend three if {{ req.ssl_sni,lower -m reg ^db[0-9]+[.] }} || {{ req.ssl_sni -i -m sub web- beta }}
  use_backend one if {{ req.ssl_sni -i db7.example.com }}
  default_backend rest
frontend closed
  bind 127.0.0.1:{ports["closed"]}
  tcp-request inspect-delay 30s
  tcp-request content accept if {{ req.ssl_hello_type 1 }}
  use_backend one if {{ req.ssl_sni -i api.example.com }}
frontend soon
  bind 127.0.0.1:{ports["soon"]}
  tcp-request inspect-delay 500ms
  tcp-request content accept if {{ req.ssl_hello_type 1 }}
  use_backend one if {{ req.ssl_sni -i api.example.com }}
  default_backend rest
{backends}
"""


@pytest.mark.promise("docs/foreign-files.md", "`use_backend` by server name and port leads as HAProxy's does")
def test_the_same_backends_arechosen():
    """The same file and the same bytes, whole and one by one: the same server gets them, and unchanged."""
    with ExitStack() as stack:
        servers = {name: NamedServer(name) for name in _BACKENDS}
        for each in servers.values():
            stack.callback(each.close)
        addresses = {name: each.server_address[1] for name, each in servers.items()}
        theirs, ours = ({name: free_port() for name in _FRONTENDS} for _ in range(2))
        stack.enter_context(HAProxy(_text(theirs, addresses)))
        imported = import_result(
            [translate(_text(ours, addresses), source="haproxy.cfg", environment={}, read=NO_FILES)]
        )
        assert imported.ok, imported.problems
        stack.enter_context(Appliance(yaml.safe_load(imported.yaml)))

        for frontend, expected in _EXPECTED.items():
            for name, backend in zip(_NAMES, expected, strict=True):
                hello = openssl_hello(name)
                for step in (len(hello), 1):
                    wanted = (backend, hello if backend else b"")
                    found = {
                        side: chosen(ports[frontend], hello, step=step)
                        for side, ports in (("haproxy", theirs), ("ours", ours))
                    }
                    assert found == {"haproxy": wanted, "ours": wanted}, (frontend, name, step)
        for ports in (theirs, ours):
            for said in (b"", openssl_hello("api.example.com")[:30]):
                assert chosen(ports["soon"], said, step=7) == ("rest", said), said
            plain = b"SSH-2.0-x\r\n"
            assert chosen(ports["names"], plain, step=7) == ("rest", plain)
            assert chosen(ports["closed"], plain, step=7) == ("", b"")
