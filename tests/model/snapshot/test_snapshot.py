"""`model.snapshot.snapshot`: what is written is what is read."""

import weakref
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from support.run.tiers import examples
from support.values.shared_ips import shared_ip
from support.values.snapshots import (
    check,
    frontend,
    group,
    pool,
    server,
    snapshot,
    snapshots,
    virtual_router,
)

from appliance.model.snapshot.discovery import Source, SourceKind
from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.linger import Linger, MovedSessions
from appliance.model.snapshot.pools import CheckStep, Discovery
from appliance.model.snapshot.snapshot import (
    Snapshot,
    SnapshotError,
    decode,
    decode_log,
    encode,
    without_secrets,
)

pytestmark = pytest.mark.pure


@settings(max_examples=examples(30))  # whole snapshots are slow to draw
@given(snapshots())
def test_decode_reverses_encode(drawn: Snapshot):
    """Any snapshot comes back from JSON as it was, in a process that knows its pools and in another one."""
    assert decode(encode(drawn)) == drawn
    assert msgspec.json.decode(encode(drawn), type=Snapshot) == drawn


def test_pools_that_are_known_are_not_decoded_again():
    """What two snapshots have in common is one object, whoever has it; what differs is another."""
    first = snapshot(pools=[pool("same"), pool("other")])
    second = replace(first, number=2, pools=(first.pools[0], replace(first.pools[1], retries=7)))
    data = encode(first), encode(second)
    del first, second
    one, two = map(decode, data)
    assert one.pools[0] is two.pools[0]
    assert [each.retries for each in (one.pools[1], two.pools[1])] == [3, 7]
    assert decode(encode(without_secrets(one))).pools[0] is one.pools[0]


def test_pools_that_nobody_has_are_forgotten():
    """A long life with many reloads keeps no pool of those before."""
    read = decode(encode(snapshot(pools=[pool()])))
    kept = weakref.ref(read.pools[0])
    assert kept() is not None
    del read
    assert kept() is None


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"\xff", b'{"number": "one"}'])
def test_decode_refuses_what_is_no_snapshot(data: bytes):
    """A damaged file is one error, whatever the damage."""
    with pytest.raises(SnapshotError):
        decode(data)
    with pytest.raises(SnapshotError):
        decode_log(data)


@given(snapshots())
@settings(max_examples=examples(10))  # whole snapshots are slow to draw
def test_log_settings_are_read_alone(drawn: Snapshot):
    """They are those of the whole snapshot."""
    assert decode_log(encode(drawn)) == drawn.log


@pytest.mark.parametrize("number", [-1, 2**31, 2**32, 10**40])
def test_a_number_that_boards_cannot_hold_is_damage(number: int):
    """A digit too many is no snapshot, and no crash of whoever publishes it."""
    text = encode(snapshot(number=7)).replace(b'"number":7', b'"number":%d' % number)
    with pytest.raises(SnapshotError):
        decode(text)


@settings(max_examples=examples(30))  # whole snapshots are slow to draw
@given(snapshots())
def test_what_a_group_may_read_has_no_secret(drawn: Snapshot):
    """Keys and passwords are the programs' alone; everything else is there."""
    shown = without_secrets(drawn)
    assert all((each.password, each.hmac) == (None, None) for each in shown.virtual_routers)
    assert replace(shown, virtual_routers=drawn.virtual_routers) == drawn


def test_what_checks_send_is_a_secret():
    """Of servers and of those that are to be found: the group may see what is expected, and no password."""
    steps = (CheckStep(send="AUTH s3cret", expect="+OK"), CheckStep(send_binary="73336372", comment="b"))
    checked = server("a", check=check(steps=steps, also=(("c", check(steps=steps)),)))
    source = Source(kind=SourceKind.NODES, what="a=")
    template = replace(checked, name="")
    found = Discovery(source=source, port=1, template=template, send_proxy=None, check_follows=True)
    made = pool("p", servers=[checked, server("b")], discover=found)
    shown = without_secrets(snapshot(pools=[made]))
    silent = check(steps=(CheckStep(expect="+OK"), CheckStep(comment="b")))
    silent = replace(silent, also=(("c", silent),))
    assert [each.check for each in shown.pools[0].servers] == [silent, None]
    assert shown.pools[0].discover is not None
    assert shown.pools[0].discover.template.check == silent
    assert b"s3cret" not in encode(shown)
    assert decode(encode(snapshot(pools=[made]))) == snapshot(pools=[made])


def test_nesting_without_end_is_damage():
    """A hundred thousand brackets are no snapshot."""
    with pytest.raises(SnapshotError):
        decode(b'{"number":' + b"[" * 100_000)


def test_a_copy_of_an_earlier_version_has_no_virtual_routers():
    """What was written before there were virtual routers can be read: it has none."""
    text = encode(snapshot()).replace(b',"virtual_routers":[]', b"")

    assert b"virtual_routers" not in text
    assert decode(text) == snapshot()


def test_group_and_pool_are_found_by_name():
    """Both look-ups return the one of that name."""
    value = snapshot(groups=[group("api"), group("ingress")], pools=[pool("a"), pool("b")])

    assert (value.group("ingress"), value.pool("b")) == (value.groups[1], value.pools[1])


def test_virtual_addresses_are_as_a_socket_names_them():
    """They come without prefix length, and in the one spelling that a bound socket has."""
    routers = [
        virtual_router("a", addresses=("192.0.2.1/24", "192.0.2.2/32")),
        virtual_router("b", family=6, addresses=("2001:DB8:0::1/64",)),
    ]
    assert snapshot(virtual_routers=routers).virtual_addresses == {"192.0.2.1", "192.0.2.2", "2001:db8::1"}
    assert snapshot().virtual_addresses == set()


def test_sessions_connect_from_shared_addresses_only_if_they_can_move():
    """Without `linger.sessions` no node forwards a server's answer for the sake of it."""
    virtual = virtual_router("a", addresses=("192.0.2.1/24",))
    shared = [shared_ip(addresses=("198.51.100.10/32",))]
    sessions = MovedSessions(certificate="/nodes.pem", authorities=None, port=29447)
    cases: tuple[tuple[Linger | None, set[str]], ...] = (
        (None, set()),
        (Linger(longest=60.0, port=29446, keys=()), set()),
        (Linger(longest=60.0, port=29446, keys=(), sessions=sessions), {"198.51.100.10"}),
    )
    for linger, more in cases:
        made = snapshot(virtual_routers=[virtual], shared_ips=shared, linger=linger)
        assert made.source_addresses == {"192.0.2.1", *more}


def test_absent_group_and_pool_are_none():
    """Both look-ups return None for a name that is not there."""
    assert (snapshot().group("other"), snapshot().pool("other")) == (None, None)


def test_program_of_a_group():
    """The group `api` is served by the program `proxy-api`."""
    assert group("api").program == "proxy-api"


@pytest.mark.parametrize(
    ("host", "text"), [("::", "[::]:443"), ("127.0.0.1", "127.0.0.1:443"), ("localhost", "localhost:443")]
)
def test_bind_prints_as_it_is_written(host: str, text: str):
    """An IPv6 address gets its brackets back."""
    assert str(Bind(host=host, port=443)) == text


def test_builders_take_their_fields_by_name():
    """The builders of the test support change what they are told and nothing else."""
    built = (frontend(respond="/ready").pool, server("a", port=81).port, pool(servers=[]).servers)

    assert built == (None, 81, ())
