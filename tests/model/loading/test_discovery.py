"""What a file says about discovery, with all defaults filled in."""

import pytest

from appliance.model.loading.loading import load
from appliance.model.snapshot.discovery import ApiAddress, Kubernetes, RouterPort
from appliance.model.snapshot.pools import SendProxy
from appliance.model.snapshot.snapshot import Snapshot

pytestmark = pytest.mark.pure


def loaded(pools: str, kubernetes: str = "{ kubeconfig: /etc/kubeconfig }") -> Snapshot:
    """Return the snapshot of a file with these pools."""
    found = load(f"pools: {pools}\nkubernetes: {kubernetes}\n", source="FILE", number=1)
    assert found.errors == ()
    assert found.snapshot is not None
    return found.snapshot


def test_masters_are_at_the_port_of_their_api():
    """The short form, with a server beside that is written by hand."""
    made = loaded("{ m: { servers: { discover: masters, a: { address: '10.0.0.1:6443' } } } }")
    (pool,) = made.pools
    assert pool.discover is not None
    assert (str(pool.discover.source), pool.discover.port) == ("masters", 6443)
    assert [(each.name, each.discovered) for each in pool.servers] == [("a", False)]
    assert pool.discover.template.discovered
    assert made.sources == (pool.discover.source,)


def test_sources_have_names_for_people():
    """Those that several pools share are one source."""
    made = loaded(
        "{ a: { servers: { discover: { routers: default } } },"
        " b: { servers: { discover: { routers: default, port: http } } },"
        " c: { servers: { discover: { nodes: 'x=y', port: 30443 } } } }"
    )
    assert [str(each) for each in made.sources] == ["routers default", "nodes x=y"]
    ports = [each.discover.port for each in made.pools if each.discover]
    assert ports == [RouterPort.HTTPS, RouterPort.HTTP, 30443]


def test_the_pools_check_and_header_are_those_of_its_servers():
    """The header is left to the IngressController unless the operator has said it."""
    made = loaded(
        "{ a: { check: { type: http, port: 1936 }, servers: { discover: { routers: default } } },"
        " b: { send_proxy: none, check: false, servers: { discover: { routers: default } } } }"
    )
    first, second = (each.discover for each in made.pools)
    assert first is not None
    assert second is not None
    assert (first.send_proxy, first.check_follows) == (None, False)
    assert first.template.check is not None
    assert first.template.check.port == 1936
    assert (second.send_proxy, second.check_follows) == (SendProxy.NONE, True)
    assert second.template.check is None


def test_how_the_api_is_asked():
    """Only where somebody is to be found; addresses are shown as they are written."""
    access = "{ token_file: /t, ca: /c, api: ['10.0.0.1:6443', '[2001:db8::1]:6443'], family: ipv6 }"
    made = loaded("{ m: { servers: { discover: masters } } }", access)
    assert made.kubernetes == Kubernetes(
        kubeconfig=None,
        token_file="/t",  # noqa: S106  # a path
        ca="/c",
        api=(ApiAddress(host="10.0.0.1", port=6443), ApiAddress(host="2001:db8::1", port=6443)),
        server_name=None,
        family=6,
    )
    assert [str(each) for each in made.kubernetes.api] == ["10.0.0.1:6443", "[2001:db8::1]:6443"]
    assert loaded("{ m: { servers: { a: { address: '10.0.0.1:6443' } } } }", access).kubernetes is None
