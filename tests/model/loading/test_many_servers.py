"""A file of many servers: what reading it costs is counted, as time is not the same on any two machines."""

import ipaddress

import pytest

from appliance.model.config.values import addresses
from appliance.model.loading.loading import load

pytestmark = pytest.mark.pure

SERVERS = "".join(f"      s{number}: {{ address: '127.3.{number}.1:443' }}\n" for number in range(200))
TEXT = f"""
api: {{ frontends: {{ f: {{ bind: ['127.0.0.1:443'], pool: p }} }} }}
pools:
  p:
    check: {{ type: https, path: /readyz }}
    servers:
{SERVERS}      other: {{ address: '127.3.0.2:443', check: {{ path: /healthz }} }}
"""


def test_an_address_is_parsed_once(monkeypatch: pytest.MonkeyPatch):
    """However many keys and rules look at a server's address, and at the next reload not again."""
    parsed: list[str] = []

    def ip_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        parsed.append(text)
        return ipaddress.ip_address(text)

    addresses.literal.cache_clear()
    monkeypatch.setattr(addresses, "ip_address", ip_address)
    for number in (1, 2):
        assert load(TEXT, source="a.yaml", number=number).snapshot is not None
    assert len(parsed) == len(set(parsed)) == 200 + 1 + 1


def test_servers_share_the_check_of_their_pool():
    """One value for all but the server that has an own check, and not an equal one for each."""
    snapshot = load(TEXT, source="a.yaml", number=1).snapshot
    assert snapshot is not None
    checks = {id(server.check) for server in snapshot.pools[0].servers}
    assert len(checks) == 2
    other = snapshot.pools[0].servers[-1].check
    assert other is not None
    assert (other.type, other.path) == ("https", "/healthz")
