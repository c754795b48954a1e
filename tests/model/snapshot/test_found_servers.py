"""Pools get the servers that were found, beside those that the operator has written."""

import pytest
from hypothesis import given
from support.values.snapshots import check, pool, server, snapshot, snapshots

from appliance.model.snapshot import found_servers
from appliance.model.snapshot.discovery import MASTERS, RouterPort, Source, SourceKind
from appliance.model.snapshot.found_servers import (
    NOTHING,
    FoundServer,
    FoundServers,
    FoundServersError,
    FoundSource,
    decode,
    encode,
    known_from,
    with_found,
)
from appliance.model.snapshot.pools import Discovery, Pool, SendProxy
from appliance.model.snapshot.snapshot import Snapshot

pytestmark = pytest.mark.pure

MASTER_NODES = Source(kind=SourceKind.NODES, what=MASTERS)
ROUTERS = Source(kind=SourceKind.ROUTERS, what="default")
FOUND = (FoundServer(name="a", host="10.0.0.1"), FoundServer(name="b", host="10.0.0.2", https=8443))


def discovery(source: Source = MASTER_NODES, **changes: object) -> Discovery:
    """Return the discovery of a pool, at port 6443."""
    values = {"port": 6443, "send_proxy": None, "check_follows": True, **changes}
    template = server("", host="", port=0, discovered=True, check=check())
    return Discovery(source=source, template=template, **values)


def found(
    *servers: FoundServer, source: Source = MASTER_NODES, proxy: bool = False, **more: bool
) -> FoundServers:
    """Return what a source has shown."""
    return FoundServers(sources=(FoundSource(source=source, servers=servers, proxy=proxy),), **more)


def only(made: Snapshot) -> Pool:
    """Return the one pool."""
    (each,) = made.pools
    return each


def test_found_servers_come_after_those_that_are_written():
    """Each as the template has it, with its own name and address."""
    before = snapshot(pools=[pool(servers=[server("x")], discover=discovery())])
    after = only(with_found(before, found(*FOUND), before=None))
    assert [(each.name, each.host, each.port) for each in after.servers] == [
        ("x", "127.0.0.1", 8080),
        ("a", "10.0.0.1", 6443),
        ("b", "10.0.0.2", 6443),
    ]
    assert [each.discovered for each in after.servers] == [False, True, True]
    fewer = with_found(snapshot(pools=[after]), found(FOUND[1]), before=None)
    assert [each.name for each in only(fewer).servers] == ["x", "b"]


def test_what_is_written_wins():
    """By its name and by its address; two Nodes at one address are one server."""
    by_name = snapshot(pools=[pool(servers=[server("a")], discover=discovery())])
    assert [each.host for each in only(with_found(by_name, found(*FOUND), before=None)).servers] == [
        "127.0.0.1",
        "10.0.0.2",
    ]
    by_address = snapshot(
        pools=[pool(servers=[server("m", host="10.0.0.1", port=6443)], discover=discovery())]
    )
    assert [each.name for each in only(with_found(by_address, found(*FOUND), before=None)).servers] == [
        "m",
        "b",
    ]
    twice = found(FOUND[0], FoundServer(name="c", host="10.0.0.1"))
    alone = snapshot(pools=[pool(servers=[], discover=discovery())])
    assert [each.name for each in only(with_found(alone, twice, before=None)).servers] == ["a"]


def test_ports_of_routers():
    """As each router has them."""
    for port, expected in ((RouterPort.HTTP, [80, 80]), (RouterPort.HTTPS, [443, 8443]), (99, [99, 99])):
        made = snapshot(pools=[pool(servers=[], discover=discovery(ROUTERS, port=port))])
        after = only(with_found(made, found(*FOUND, source=ROUTERS), before=None))
        assert [each.port for each in after.servers] == expected
        assert known_from(snapshot(pools=[after]), ROUTERS) is not None


def test_the_proxy_header_follows_the_ingress_controller():
    """Where the operator has not said it; checks of the same port follow it too."""
    wanting = found(*FOUND, source=ROUTERS, proxy=True)

    def headers(**changes: object) -> tuple[SendProxy, SendProxy]:
        made = snapshot(pools=[pool(servers=[], discover=discovery(ROUTERS, **changes))])
        after = only(with_found(made, wanting, before=None))
        assert after.servers[0].check is not None
        return after.send_proxy, after.servers[0].check.send_proxy

    assert headers() == (SendProxy.V2, SendProxy.V2)
    assert headers(check_follows=False) == (SendProxy.V2, SendProxy.NONE)
    assert headers(send_proxy=SendProxy.V1) == (SendProxy.V1, SendProxy.V1)
    unchecked = discovery(ROUTERS)
    bare = snapshot(pools=[pool(servers=[], discover=unchecked)])
    assert only(with_found(bare, found(*FOUND, source=ROUTERS), before=None)).send_proxy is SendProxy.NONE


def test_the_bootstrap_server_goes_when_the_cluster_is_installed():
    """In pools of masters; a server of that name elsewhere is the operator's own business."""
    written = [server("bootstrap"), server("x")]
    masters, infra = discovery(), discovery(Source(kind=SourceKind.NODES, what="infra="))
    made = snapshot(
        pools=[
            pool("masters", servers=written, discover=masters),
            pool("infra", servers=written, discover=infra),
            pool("by-hand", servers=written),
        ]
    )
    after = with_found(made, FoundServers(installed=True), before=None)
    assert [[each.name for each in one.servers] for one in after.pools] == [
        ["x"],
        ["bootstrap", "x"],
        ["bootstrap", "x"],
    ]
    assert with_found(made, NOTHING, before=None) == made


def test_a_source_of_which_nothing_is_known_keeps_its_servers():
    """A lost file costs no server: those that are accepted stay."""
    empty = snapshot(pools=[pool(servers=[], discover=discovery())])
    filled = with_found(empty, found(*FOUND), before=None)
    assert with_found(filled, NOTHING, before=filled) == filled
    assert with_found(empty, NOTHING, before=filled) == filled
    assert only(with_found(empty, NOTHING, before=empty)).servers == ()
    assert known_from(filled, ROUTERS) is None


@given(snapshots())
def test_pools_without_discovery_stay_as_they_are(given: Snapshot):
    """Nothing is found for them."""
    assert with_found(given, found(*FOUND, installed=True), before=None) == given


def test_the_file_comes_back(monkeypatch: pytest.MonkeyPatch):
    """What was written is read; anything else is one error."""
    several = found(*FOUND, installed=True)
    assert decode(encode(several)) == several
    for damaged in (b"", b"[]", b'{"sources":7}', b"[" * 10000):
        with pytest.raises(FoundServersError):
            decode(damaged)
    monkeypatch.setattr(found_servers, "MOST_SERVERS", 1)
    with pytest.raises(FoundServersError, match="more than 1 servers"):
        decode(encode(several))
