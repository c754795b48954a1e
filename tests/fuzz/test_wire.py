"""Every decoder of `appliance.wire`, fed with whatever a peer may send: see support/fuzzing/fuzzing.py."""

import hmac
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec
import pytest
from support.discovery import kube_api
from support.fuzzing.fuzzing import Target, fuzz, round_trip
from support.machines import ovf
from support.values import boards
from support.values import moving_sessions as moved
from support.values.client_hellos import extension, message, records, server_name
from support.values.migration import OFFER
from support.values.release_signatures import SIGNATURE
from support.values.shared_ips import announcing, session, shared_status
from support.values.snapshots import track
from support.values.statuses import discovery
from support.vrrp import vip_answers

from appliance import wire
from appliance.core.discovery import finding
from appliance.core.discovery.finding import AddressChoice
from appliance.core.discovery.reflection import Reflection, TooManyObjectsError
from appliance.core.linger.other_nodes import OtherNodes, ThisNode
from appliance.model.byte_pattern import LONGEST, byte_pattern
from appliance.model.operator_events import EventKind, OperatorEvent
from appliance.model.snapshot.pools import CheckStep, SendProxy
from appliance.wire import (
    checksummed_json,
    exposition,
    history_ring,
    linger_node,
    linger_report,
    linger_strays,
    ovf_environment,
    proxy_protocol,
    release_signature,
    session_migration,
    sockaddr,
)
from appliance.wire.bird import bird_answers
from appliance.wire.boards import ended_workers, health_board, vrrp_board, worker_board
from appliance.wire.boards.health_board import BoardFormatError
from appliance.wire.checks.conversation import Conversation, Missed, Passed, Receive, Send
from appliance.wire.checks.pattern_search import PatternSearch
from appliance.wire.conntrackd import conntrackd_control
from appliance.wire.ethernet import arp, neighbour_discovery
from appliance.wire.haproxy import commands
from appliance.wire.http import failed_checks, http_request, http_response, response_body
from appliance.wire.kubernetes import answers, kubeconfig, objects
from appliance.wire.lines import (
    announce_status,
    connect_failure,
    control,
    discovery_status,
    event_lines,
    forward_status,
    linger_status,
    listed_session,
    migrate_status,
    moving_sessions,
    node_answers,
    owner_change,
    proxy_status,
    redirect_status,
    reload_line,
    reload_status,
    status_answer,
    succession,
    tracker_lines,
    vrrp_status,
    vrrp_takeover,
    worker_arguments,
    worker_status,
)
from appliance.wire.lines.control import Question, bad, good
from appliance.wire.lines.discovery_status import FoundStatus, SourceStatus
from appliance.wire.lines.line_buffer import LineBuffer
from appliance.wire.lines.listed_session import ListedSession
from appliance.wire.lines.succession import Party, Predecessor
from appliance.wire.lines.vrrp_takeover import KnownRouter, KnownTrack
from appliance.wire.lines.worker_arguments import InheritedListener, WorkerArguments
from appliance.wire.lines.worker_status import WorkerListener, WorkerStatus
from appliance.wire.need import Need
from appliance.wire.nftables import nftables_answer, stray_keys
from appliance.wire.tls.client_hello import ClientHello, HelloError, HelloReader
from appliance.wire.vrrp import advertisement, hmac_trailer, internet_checksum, ipv4_header
from appliance.wire.vrrp.advertisement import Advertisement, AuthType, VrrpError

pytestmark = pytest.mark.pure

MAC = bytes.fromhex("00005e0001de")
SOURCE, SOURCE_6 = "10.0.0.91", "fe80::10"
KEYS = {1: bytes(range(32))}
FORWARD_STATUS = forward_status.ForwardStatus(
    program="forward",
    groups=(
        forward_status.ForwardedGroup(program="proxy-api", frontends=(boards.frontend_counters(total=3),)),
    ),
    servers=(boards.server_counters(),),
)
REDIRECT_STATUS = redirect_status.RedirectStatus(
    program="redirect",
    pid=7,
    redirects=(redirect_status.RedirectedFrontend(name="api/k", sources=("10.0.0.200:6443",), state="on"),),
)


LINGER_STATUS = linger_status.LingerStatus(
    program="linger",
    pid=7,
    addresses=(linger_status.KeptStatus(address="10.0.0.200", router="api", left_at=1.5, connections=3),),
    others=(linger_status.KeeperStatus(node="10.0.0.91", address="10.0.0.200", active=True),),
    drops={"digest": 1},
    shared=(linger_status.SharedAddress(address="10.0.1.1", ready=True, nodes=("10.0.0.91",)),),
    nodes=(
        linger_status.OtherNode(
            name="lb-1",
            differs_since=1.5,
            judged=(linger_status.JudgedServer(server="masters/m1", here="up"),),
        ),
    ),
    strays={"led": 1},
)


NODE_STATUS = (
    b'{"ok": false, "problems": ["a"], "version": "1", "digest": "d", "virtual_ips": '
    b'[{"name": "api", "addresses": ["10.0.0.200/24"], "state": "active", "active": true}]}'
)


def _report(address: str, family: int, source: str) -> bytes:
    """Return a report that is believed."""
    said = linger_report.ReportedAddress(address=address, active=False, left=1.5, connections=3)
    report = linger_report.LingerReport(
        mac=MAC,
        session=bytes(8),
        sequence=7,
        challenge=bytes(4),
        addresses=(said, said),
        answered=(linger_report.AnsweredNode(mac=MAC, challenge=bytes(4), believed=True),),
    )
    return linger_report.encode(report, family=family, source=source, secret=KEYS[1])


def reported(payload: bytes) -> None:
    """Take a datagram as the program does; what it hears it could say itself."""
    found = linger_report.decode(payload, source=SOURCE, secrets=[KEYS[1]])
    for family in {4 if "." in each.address else 6 for each in found.addresses}:
        again = linger_report.encode(found, family=family, source=SOURCE, secret=KEYS[1])
        assert linger_report.decode(again, source=SOURCE, secrets=[KEYS[1]]) == found


def _told(client: str, address: str, family: int, source: str) -> bytes:
    """Return what a node tells of strays, which is believed."""
    ends = (client, 4711, address, 443)
    told = linger_strays.ReportedStrays(session=bytes(8), sequence=7, found=(ends, ends), denied=(ends,))
    return linger_strays.encode(told, family=family, source=source, secret=KEYS[1])


def told(payload: bytes) -> None:
    """Take a datagram as the program does; what it hears it could say itself."""
    found = linger_strays.decode(payload, source=SOURCE, secrets=[KEYS[1]])
    again = linger_strays.encode(found, family=4, source=SOURCE, secret=KEYS[1])
    assert again == payload


def _node(page: str) -> bytes:
    """Return what a node tells of itself, which is believed."""
    facts = linger_node.NodeFacts(
        name="lb-1",
        release="1.0",
        configuration=bytes(range(16)),
        condition=linger_node.Condition.WELL,
        page=page,
        marks=linger_node.marks(["10.0.0.200", "10.0.0.201"]),
        servers={linger_node.server_key("masters", str(each)): bool(each % 2) for each in range(3)},
    )
    told = linger_node.ReportedNode(session=bytes(8), sequence=7, facts=facts)
    return linger_node.encode(told, source=SOURCE, secret=KEYS[1])


def told_node(payload: bytes) -> None:
    """Take a datagram as the program does; what it hears it could say itself, and it can be compared."""
    found = linger_node.decode(payload, source=SOURCE, secrets=[KEYS[1]])
    again = linger_node.encode(found, source=SOURCE, secret=KEYS[1])
    assert linger_node.decode(again, source=SOURCE, secrets=[KEYS[1]]) == found
    others = OtherNodes()
    here = ThisNode(name="lb-0", configuration=bytes(16), marks=found.facts.marks, servers={})
    others.look(here, now=0.0)
    others.receive(SOURCE, found.facts, now=0.0)
    others.look(here, now=60.0)
    assert len(others.nodes(now=60.0, wall=60.0)) == bool(found.facts.marks)


def signed_release(stream: bytes) -> None:
    """Take a stream as `upgrade -` does: its parts are the stream, and the key is one word."""
    signature, archive = release_signature.split(stream)
    assert (signature or b"") + archive == stream
    found = release_signature.decode(stream if signature is None else signature)
    assert found.public_key.split() == [found.public_key]


def signed_anew(payload: bytes) -> bytes:
    """Give a damaged report the right digest, so that what is behind it is met."""
    body = payload[:-32]
    return body + hmac.digest(KEYS[1], bytes([10, 0, 0, 91]) + body, "sha256")


EVENT = OperatorEvent(when=1.5, kind=EventKind.SERVER_DOWN, subject="masters/m-0", detail="500", id="1-2")


def kept_events(data: bytes) -> None:
    """Read lines of events; what was understood is the same when it is written again, and can be shown."""
    for event in event_lines.decode(data):
        line = event_lines.encode(event)
        assert len(line) <= event_lines.LONGEST
        assert list(event_lines.decode(line)) == [event]
        assert f"{event.subject}{event.detail}{event.cause}".isprintable()


def advert(version: int, *addresses: str, **changes: object) -> Advertisement:
    """Return an advertisement."""
    return Advertisement(
        version=version, router_id=51, priority=200, interval=1.0, addresses=addresses, **changes
    )


def advertised(said: Advertisement, *, source: str) -> bytes:
    """Return its message."""
    return advertisement.encode(said, source=source, destination=_group(source))


def _group(source: str) -> str:
    return advertisement.MULTICAST_6 if ":" in source else advertisement.MULTICAST_4


def _signed(said: Advertisement, *, source: str) -> bytes:
    clock = hmac_trailer.Stamp(seconds=1_700_000_000, fraction=0, counter=0)
    message = advertised(said, source=source)
    return hmac_trailer.sealed(
        message, source=source, destination=_group(source), key_id=1, secret=KEYS[1], clock=clock
    )


def receive(source: str) -> Callable[[bytes], None]:
    """Return the function that takes a payload as the program does; what it hears it could say itself."""

    def run(payload: bytes) -> None:
        message, trailer = advertisement.split(payload)
        said = advertisement.decode(message, source=source, destination=_group(source), trailer=trailer)
        again = advertised(said, source=source)
        assert advertisement.decode(again, source=source, destination=_group(source)) == said
        if trailer:
            hmac_trailer.verify(message, trailer, source=source, keys=KEYS)

    return run


def with_checksum(source: str) -> Callable[[bytes], bytes]:
    """Return the function that gives a payload the right checksum, so that the checks behind it are met."""

    def mend(payload: bytes) -> bytes:
        if len(payload) < 8:
            return payload
        message, trailer = advertisement.split(payload)
        if ":" in source:
            return advertisement.with_trailer(message, trailer, source=source, destination=_group(source))
        blank = advertisement.unsummed(message)
        return blank[:6] + internet_checksum.checksum(blank).to_bytes(2, "big") + blank[8:] + trailer

    return mend


def _neighbour_checksum(frame: bytes) -> bytes:
    if len(frame) < 60:
        return frame
    length = (len(frame) - 54).to_bytes(2, "big")
    blank = frame[:18] + length + frame[20:56] + bytes(2) + frame[58:]
    pseudo = blank[22:54] + length + (58).to_bytes(2, "big")
    total = internet_checksum.checksum(pseudo + blank[54:])
    return blank[:56] + total.to_bytes(2, "big") + blank[58:]


def _chunks(data: bytes) -> list[bytes]:
    """Return the data in pieces, the same ones each time."""
    random = Random(data)  # noqa: S311  # has to be the same again
    cuts = sorted(random.randint(0, len(data)) for _ in range(random.randint(0, 5)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def reload_lines(data: bytes) -> None:
    """Demand the same lines of a stream however it is cut into chunks, and a bound for what is kept."""
    whole, pieces = reload_line.ReloadLines(), reload_line.ReloadLines()
    assert list(whole.feed(data)) == [each for chunk in _chunks(data) for each in pieces.feed(chunk)]
    assert len(pieces._pending) <= reload_line.LINE_LIMIT


def line_stream(data: bytes) -> None:
    """Demand the same of control lines; a line that is too long ends the connection in both cases."""
    whole = LineBuffer(1000)
    pieces = LineBuffer(1000)
    lines = list(whole.feed(data))
    assert lines == [each for chunk in _chunks(data) for each in pieces.feed(chunk)]


def command_line(data: bytes) -> None:
    """Demand a command of each part of a line; each alone means the same as among others."""
    found = commands.commands(data)
    assert found == [each for part in data.split(b";") for each in commands.commands(part)]


def accept_header(data: bytes) -> None:
    """Demand one of the two formats of a header as a WSGI server gives it."""
    assert exposition.wanted_format(data.decode("latin-1")) in exposition.Format


def decoded(decode: Callable[[bytes], object]) -> Callable[[bytes], None]:
    """Return the function that reads what may be incomplete: more bytes never turn an answer into another."""

    def run(data: bytes) -> None:
        value = decode(data)
        if value is not Need.MORE:
            assert decode(data + b"tail") == value
            assert decode(data) == value

    return run


def answer_body(data: bytes) -> None:
    """Demand the same body of an answer however it is cut into pieces, and a bound for what is kept."""
    whole, pieces = response_body.ResponseBody("GET"), response_body.ResponseBody("GET")
    whole.feed(data)
    for chunk in _chunks(data):
        pieces.feed(chunk)
    assert (pieces.line, pieces.body, pieces.ended) == (whole.line, whole.body, whole.ended)
    assert pieces.persists is whole.persists
    if whole.persists:
        assert whole.ended
        whole.feed(b"H")
        assert not whole.persists
    assert len(pieces.body) <= response_body.BODY_LIMIT


def proxy_header(data: bytes) -> None:
    """Demand of a PROXY header that its size is within the bytes, and that it can be written again."""
    found = proxy_protocol.decode(data)
    if found is Need.MORE:
        return
    assert 0 < found.size <= len(data)
    assert proxy_protocol.decode(data[: found.size]) == found
    if found.source is not None and found.destination is not None:
        version = SendProxy.V1 if found.version == 1 else SendProxy.V2
        again = proxy_protocol.decode(proxy_protocol.encode(version, found.source, found.destination))
        assert proxy_protocol.decode(proxy_protocol.encode(version, again.source, again.destination)) == again


def unsealed(data: bytes) -> None:
    """Demand that what is sealed is found as it was, however often."""
    content = checksummed_json.verified(data)
    if content.endswith(b"}"):
        assert checksummed_json.verified(checksummed_json.checksummed(content)) == content


def address(data: bytes) -> None:
    """Demand a text of every address of the kernel's."""
    raw = data[: sockaddr.SIZE].ljust(sockaddr.SIZE, b"\0")
    assert str(sockaddr.port(raw)) in sockaddr.text(raw)
    assert len(sockaddr.packed(raw)) in {4, 16}


def board(decode: Callable[[bytes], object], encode: Callable[..., bytes]) -> Callable[[bytes], None]:
    """Return the function that reads a board; texts that are no UTF-8 cannot be said again."""

    def run(payload: bytes) -> None:
        value = decode(payload)
        if "\ufffd" not in repr(value):
            round_trip(decode, encode)(payload)

    return run


ORDERS = WorkerArguments(
    program="proxy-api",
    group="api",
    generation=1,
    index=0,
    workers=2,
    snapshot=1,
    listeners=(InheritedListener(frontend="kube-api", host="::", port=9445, fd=5),),
    ready_fd=6,
)
STATUS = WorkerStatus(
    pid=7,
    phase="draining",
    workers=2,
    snapshot=1,
    drain_deadline=1.5,
    listeners=(WorkerListener(frontend="kube-api", host="::", port=9445),),
)
ROUTER = vrrp_board.RouterRecord(
    name="api",
    state="active",
    priority=150,
    since=1.0,
    transitions=1,
    adverts_sent=2,
    adverts_received=3,
    priority_zero_sent=4,
    priority_zero_received=5,
    gratuitous_sent=6,
    last_advert=7.0,
    peer=SOURCE,
    drops={},
)
VRRP_BOARD = vrrp_board.VrrpBoard(
    snapshot=1,
    pid=2,
    written_at=3.0,
    monotonic=4.0,
    late_wakeups=5,
    latest_wakeup=6.0,
    realtime=True,
    routers=(ROUTER, ROUTER),
)
LISTED = ListedSession(
    id="proxy-api-1-0-1",
    frontend="kube-api",
    client="[::1]:40000",
    server="masters/master-0",
    age=1.5,
    idle=0.25,
    bytes_in=3,
    bytes_out=0,
    phase="open",
)
KNOWN_ROUTER = KnownRouter(
    name="api",
    router_id=51,
    active=True,
    yielded=False,
    tracks=(KnownTrack(name="ready", up=True, value=0, detail="200 OK"),),
)
V6 = advertised(advert(3, "fe80::1", "2001:db8::1"), source=SOURCE_6)
JSON_WORDS = (
    b"null",
    b"true",
    b"-1",
    b'"\\ud800"',
    b'"\\u0000"',
    b"1e400",
    b"9" * 30,
    b"[" * 200,
    b'{"a":' * 200,
)
ENDPOINTS = (SOURCE, 443), ("10.0.0.200", 6443)
ENDPOINTS_6 = ("2001:db8::1", 443), ("2001:db8::2", 6443)

API_WORDS = (
    *JSON_WORDS,
    b'"continue":"x"',
    b'"resourceVersion":""',
    b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}',
    b'{"type":"ERROR","object":{"code":410}}',
    b'"items":null',
)
API_ANSWERS = tuple(
    (
        name,
        kind,
        (
            json.dumps({"metadata": {"resourceVersion": "7", "continue": ""}, "items": [value]}).encode(),
            json.dumps({"type": "MODIFIED", "object": value}).encode(),
            b'{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}',
        ),
    )
    for name, kind, value in (
        ("node", objects.Node, kube_api.node("a", "10.0.0.1", "2001:db8::1")),
        ("slice", objects.EndpointSlice, kube_api.router_slice("s", {"a": "10.0.0.1", "!b": "10.0.0.2"})),
        (
            "controller",
            objects.IngressController,
            {
                "metadata": {"name": "default", "resourceVersion": "7"},
                "status": {
                    "endpointPublishingStrategy": {
                        "type": "HostNetwork",
                        "hostNetwork": {"httpPort": 80, "httpsPort": 443, "protocol": "PROXY"},
                    }
                },
            },
        ),
        ("configmap", objects.ConfigMap, {"metadata": {"name": "bootstrap"}, "data": {"status": "complete"}}),
    )
)
KUBECONFIG = b"""\
current-context: a
contexts: [{name: a, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: aGVsbG8=}}]
users: [{name: u, user: {token: abc, client-certificate: me.crt}}]
"""
DISCOVERY_STATUS = discovery(
    SourceStatus(
        name="masters",
        pools=("masters",),
        servers=(FoundStatus(name="a", host="10.0.0.1", held=False),),
        seen_at=2.5,
        changed_at=None,
        hold=None,
        proxy=False,
        resources=(),
    )
)


def api_answer(data: bytes, kind: type[objects.ApiObject]) -> None:
    """Take an answer as the program does: as a page or an event, which becomes servers, and as a refusal."""
    choice = AddressChoice(family=None, virtual=())
    assert answers.decode_refusal(data, status=500).message
    known: Reflection[objects.ApiObject] = Reflection()
    try:
        known.page(answers.decode_page(data, kind))
    except answers.AnswerError:
        known.event(answers.decode_event(data, kind))
    found = known.objects
    finding.nodes([each for each in found if isinstance(each, objects.Node)], choice)
    slices = [each for each in found if isinstance(each, objects.EndpointSlice)]
    controllers = [each for each in found if isinstance(each, objects.IngressController)]
    finding.routers(slices, controllers, choice)
    finding.api_servers(slices)
    finding.expects_proxy(controllers)
    finding.is_installed([each for each in found if isinstance(each, objects.ConfigMap)])


def history(data: bytes) -> None:
    """Read a file with a slot of these bytes, as they are and with their checksum; write what is in it."""
    content = data[: history_ring.SLOT_BYTES - 6]
    checked = zlib.crc32(content).to_bytes(4, "big") + len(content).to_bytes(2, "big") + content
    for slot in (data[: history_ring.SLOT_BYTES], checked):
        file = bytearray(history_ring.empty())
        file[history_ring.SLOT_BYTES : history_ring.SLOT_BYTES + len(slot)] = slot
        minutes = history_ring.decode(bytes(file))
        assert [each.number % history_ring.SLOTS for each in minutes] in ([], [0])
        assert all(history_ring.encode(each) for each in minutes)
    history_ring.decode(data)


MINUTE = msgspec.json.encode(
    history_ring.Minute(
        number=history_ring.SLOTS,
        total=history_ring.FrontendMinute(1, 2, 3, 4),
        frontends={"a": history_ring.FrontendMinute(1, 2, 3, 4)},
        pools={"b": history_ring.PoolMinute(1, 2, 3, 4)},
    )
)
ENDED = ended_workers.with_ended(
    ended_workers.EndedWorkers(),
    boards.worker(frontends=(boards.frontend_counters(total=3),), servers=(boards.server_counters(total=3),)),
)
STEPS = (
    CheckStep(send="AUTH s3cret\r\n", expect_rstring="^[-+]", negate=False),
    CheckStep(expect="+PONG", comment="it speaks"),
    CheckStep(send="INFO\r\n", expect_rstring=r"(?i)role:(master|primary)\r?\n", min_recv=5),
    CheckStep(expect="s3cret", negate=True),
    CheckStep(expect_binary="0000", expect_rstring=""),
    CheckStep(send_binary="00ff", expect_rstring=r"^([a-z]+\d*)+x$"),
)
"""Steps of every kind, which a server's answers are judged by."""


def conversed(data: bytes) -> None:
    """Answer a conversation in pieces, which a byte of 1 divides: it ends, and tells no secret."""
    made = Conversation(STEPS)
    pieces = [*data.split(b"\x01"), b"", b""]
    for _ in range(2 * (len(pieces) + len(STEPS))):
        match made.move():
            case Receive():
                made.feed(pieces.pop(0) if pieces else b"")
            case Send(said):
                assert said
            case Missed(reason):
                assert b"s3cret" not in reason.replace("`s3cret` came", "").encode()
                assert reason.isprintable()
                return
            case Passed():
                return
    raise AssertionError("no end")


def greeted(data: bytes) -> None:
    """Read a ClientHello: whole, and in pieces, with the same outcome."""
    assert _hello(data, len(data) + 1) == _hello(data, 3)


def _hello(data: bytes, size: int) -> ClientHello | Need | None:
    reader, found = HelloReader(), Need.MORE
    try:
        for at in range(0, len(data), size):
            found = reader.feed(data[at : at + size])
            if found is not Need.MORE:
                break
    except HelloError:
        return None
    return found


def searched(data: bytes) -> None:
    """Search the second half by the expression in the first: whole and in pieces the same is found."""
    text, _, answer = data.partition(b"\x00")
    pattern = byte_pattern(text.decode())
    whole, cut = PatternSearch(pattern), PatternSearch(pattern)
    whole.feed(answer)
    for at in range(0, len(answer), 7):
        cut.feed(answer[at : at + 7])
    assert (whole.found, whole.given_up) == (cut.found, cut.given_up)


def _as_text(data: bytes) -> bytes:
    """Make the expression a text again."""
    text, mark, answer = data.partition(b"\x00")
    return text.decode(errors="ignore").encode()[:LONGEST] + mark + answer


def status_round_trip(kind: type[object]) -> Callable[[bytes], None]:
    """Return what reads and writes a status of that type as the values of an answer."""
    return round_trip(
        lambda line: status_answer.decode(control.decode_answer(line).values, kind),
        lambda status: control.encode_answer(good(**status_answer.encode(status))),
    )


ANNOUNCE_STATUS = announcing(shared_status(), by=(session(),))


def bird_answer(data: bytes) -> None:
    """Demand an answer, a part of one, or the one error; and sessions of each answer."""
    answer = bird_answers.AnswerBuffer().feed(data)
    if answer is not None:
        bird_answers.sessions(answer)
        bird_answers.bfd_sessions(answer)


CONNTRACKD = b"""external inject:
connections created: 1 failed: 2
connections updated: 3 failed: 4
connections destroyed: 5 failed: 6
7 Bytes sent 8 Bytes recv
9 Pckts sent 10 Pckts recv
11 Error send 12 Error recv
13 Malformed msgs 14 Lost msgs
"""


def _without_length(message: session_migration.Message) -> bytes:
    return session_migration.encode(message)[session_migration.PREFIX :]


TARGETS = (
    Target(
        name="client-hello",
        run=greeted,
        seeds=(
            records(message(extension(10, b"\0\2\0\x17"), server_name(b"a.example.com"))),
            records(message()),
            records(message(server_name(b"a.example.com")), [1, 2, 30]),
        ),
        words=(b"\x16\x03\x01", b"\x00\x00", b"\xff\xff", b"\x01\x00\x40\x00"),
    ),
    Target(
        name="event-lines",
        run=kept_events,
        seeds=(event_lines.encode(EVENT), event_lines.encode(EVENT) * 3),
        words=(b"\n", b'"kind"', b"1e400", b"\\u001b", b"\\ud800", b'"server-up"'),
    ),
    Target(
        name="arp",
        run=arp.decode,
        seeds=(arp.probe(MAC, SOURCE), arp.gratuitous(MAC, SOURCE, form=arp.GratuitousForm.REPLY)),
        errors=(arp.ArpError,),
    ),
    Target(
        name="neighbour-discovery",
        run=neighbour_discovery.decode,
        seeds=(
            neighbour_discovery.probe(MAC, SOURCE_6),
            neighbour_discovery.unsolicited(MAC, SOURCE_6),
            neighbour_discovery.solicitation(MAC, SOURCE_6, "fe80::20"),
        ),
        errors=(neighbour_discovery.NeighbourError,),
        mend=_neighbour_checksum,
    ),
    Target(
        name="advertisement-ipv4",
        run=receive(SOURCE),
        seeds=(
            advertised(
                advert(2, "10.0.0.200", auth_type=AuthType.PASSWORD, password=b"s3cret"), source=SOURCE
            ),
            advertised(advert(3, "10.0.0.200", "10.0.0.201"), source=SOURCE),
            _signed(advert(3, "10.0.0.200"), source=SOURCE),
        ),
        errors=(VrrpError,),
        mend=with_checksum(SOURCE),
    ),
    Target(
        name="advertisement-ipv6",
        run=receive(SOURCE_6),
        seeds=(V6, _signed(advert(3, "fe80::1"), source=SOURCE_6)),
        errors=(VrrpError,),
        mend=with_checksum(SOURCE_6),
    ),
    Target(
        name="ipv4-header",
        run=ipv4_header.decode,
        seeds=(bytes.fromhex("45c0002000010000ff70b0510a00005be0000012") + bytes(12),),
        errors=(VrrpError,),
    ),
    Target(
        name="proxy-protocol",
        run=proxy_header,
        seeds=(
            proxy_protocol.encode_v1(*ENDPOINTS),
            proxy_protocol.encode_v2(*ENDPOINTS),
            proxy_protocol.encode_v1(*ENDPOINTS_6),
            proxy_protocol.encode_v2(*ENDPOINTS_6),
            proxy_protocol.local_v1(),
            proxy_protocol.local_v2(),
        ),
        errors=(proxy_protocol.ProxyHeaderError,),
    ),
    Target(
        name="conversation",
        run=conversed,
        seeds=(
            b"+PONG\r\n\x01role:master\r\n\x01R\x00\x00\x00\x08\x00\x00\x00\x00",
            b"-ERR unknown command `AUTH`, with args beginning with: `s3cret`\x01",
            b"220-mail\r\n\x01220 ready\r\n",
        ),
        words=(b"+PONG", b"role:", b"master", b"s3cret", b"220 ", b"\x01", b"ab" * 40, b"\r\n"),
        longest=40_000,
    ),
    Target(
        name="pattern-search",
        run=searched,
        seeds=(
            b"^(220|250)[ -].*ready$\x00220 mail ready\r\n",
            b"(?i)role:(master|slave)\\r?\\n\x00role:MASTER\n",
            b"(a|b)*a(a|b){20}c\x00" + b"abba" * 900,
            b"[^a-c\\x00-\\x1f]{2,5}?|\\d+\x00x1",
        ),
        errors=(ValueError,),
        words=(b"{2,}", b"(?:", b"[^", b"]", b"|", b"*", b"\\x41", b"$", b"^", b"{255}", b"(a|b)*", b"()"),
        mend=_as_text,
    ),
    Target(
        name="http-request",
        run=decoded(http_request.decode),
        seeds=(
            b"GET /haproxy_ready HTTP/1.0\r\n\r\n",
            b"HEAD /haproxy_monitor?x=1 HTTP/1.1\r\nHost: lb:9454\r\nUser-Agent: curl\r\n\r\n",
        ),
        errors=(http_request.RequestError,),
        words=(b"HTTP/1.1", b"GET ", b"\r\n\r\n"),
    ),
    Target(
        name="response-body",
        run=answer_body,
        seeds=(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            b"HTTP/1.1 103\r\n\r\nHTTP/1.1 200 -\r\nTransfer-Encoding: chunked\r\n\r\n1;a\r\nx\r\n0\r\n\r\n",
            b"HTTP/1.0 500 no\n\nok",
            b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nExpires: 0\r\n\r\n",
        ),
        errors=(http_response.ResponseError,),
        words=(
            b"Connection: close\r\n",
            b"Content-Length: ",
            b"Transfer-Encoding: chunked\r\n",
            b"\r\n\r\n",
            b"ffffffff\r\n",
        ),
    ),
    Target(
        name="failed-checks",
        run=lambda data: failed_checks.failed_checks(data, "GET"),
        seeds=(b"HTTP/1.0 500 no\r\n\r\n[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed",),
        errors=(),
        words=(b"[-]", b"\n[-]", b"\r\n\r\n"),
    ),
    Target(
        name="http-response",
        run=decoded(http_response.decode),
        seeds=(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"HTTP/1.0 500 \xff\x1b[31m\n"),
        errors=(http_response.ResponseError,),
        words=(b"HTTP/1.1", b" 200", b" 503 "),
    ),
    Target(
        name="control-question",
        run=round_trip(control.decode_question, control.encode_question),
        seeds=(
            control.encode_question(Question(command="drain", values={"deadline": 1.5, "pool": "masters"})),
            control.encode_question(Question(command="apply", values={"snapshot": 4})),
        ),
        errors=(control.ControlError,),
        words=JSON_WORDS,
    ),
    Target(
        name="control-answer",
        run=round_trip(control.decode_answer, control.encode_answer),
        seeds=(
            control.encode_answer(good(pid=1, listeners=[{"frontend": "f", "host": "::", "port": 1}])),
            control.encode_answer(bad(control.AnswerProblem(message="no", path="pools.p", line=3, column=1))),
        ),
        errors=(control.ControlError,),
        words=JSON_WORDS,
    ),
    Target(
        name="moving-sessions",
        run=round_trip(
            lambda line: moving_sessions.offer(control.decode_question(line).values),
            lambda offer: control.encode_question(
                Question(command="offer", values=moving_sessions.values(offer))
            ),
        ),
        seeds=tuple(
            control.encode_question(
                Question(command="offer", values=moving_sessions.values(moving_sessions.offer_of(sessions)))
            )
            for sessions in ([moved.OPEN], [moved.QUEUED, moved.OPEN])
        ),
        errors=(control.ControlError,),
        words=(b'"piped":', b'"backlog":', b'"version":1', b'"waiting":', *JSON_WORDS),
    ),
    Target(
        name="session-migration",
        run=round_trip(session_migration.decode, _without_length),
        seeds=tuple(
            _without_length(each)
            for each in (
                OFFER,
                session_migration.Hello(version=1, run=bytes(16)),
                session_migration.Commit(batch=bytes(16), places=(0, 7)),
            )
        ),
        errors=(session_migration.MigrationError,),
    ),
    Target(
        name="owner-change",
        run=round_trip(
            lambda line: owner_change.decode(control.decode_question(line).values),
            lambda change: control.encode_question(
                Question(command="change-owner", values=owner_change.values(change))
            ),
        ),
        seeds=(
            control.encode_question(
                Question(
                    command="change-owner",
                    values=owner_change.values(
                        owner_change.OwnerChange(ours=(("10.0.0.9", 40000, "10.0.0.200", 6443),))
                    ),
                )
            ),
        ),
        errors=(control.ControlError,),
        words=JSON_WORDS,
    ),
    Target(
        name="migrate-status",
        run=status_round_trip(migrate_status.MigrateStatus),
        seeds=(
            control.encode_answer(
                good(
                    **status_answer.encode(
                        migrate_status.MigrateStatus(
                            departures=(
                                migrate_status.DepartureStatus(address="10.0.0.200", stay={"its end": 2}),
                            ),
                            given=3,
                        )
                    )
                )
            ),
        ),
        errors=(control.ControlError, status_answer.StatusAnswerError),
        words=JSON_WORDS,
    ),
    Target(
        name="listed-session",
        run=round_trip(
            lambda line: listed_session.decode(control.decode_answer(line)),
            lambda sessions: control.encode_answer(listed_session.encode(sessions)),
        ),
        seeds=(control.encode_answer(listed_session.encode([LISTED])),),
        errors=(control.ControlError,),
        words=(b'"server":null', b'"bytes_in":'),
    ),
    Target(
        name="line-buffer",
        run=line_stream,
        seeds=(b'{"command": "status"}\n{"command": "apply", "snapshot": 1}\r\n', b"\n" * 50),
        errors=(control.ControlError,),
        words=(b"x" * 1001,),
    ),
    Target(
        name="reload-line",
        run=reload_lines,
        seeds=(b"reload\nreload\r\n  reload \nshow info\n", b"reload"),
        words=(b"reload\n", b"x" * 4096),
    ),
    Target(
        name="tracker-lines-order",
        run=round_trip(tracker_lines.decode_order, tracker_lines.encode),
        seeds=(
            tracker_lines.encode(tracker_lines.WatchTracks(tracks=(("api", track()),))),
            tracker_lines.encode(
                tracker_lines.RunCommand(router="api", words=("a", "b"), user=None, timeout=1.0)
            ),
            tracker_lines.encode(tracker_lines.WriteLine(router="api", path="/f", line="a b")),
        ),
        errors=(tracker_lines.TrackerLineError,),
        words=JSON_WORDS,
    ),
    Target(
        name="tracker-lines-report",
        run=round_trip(tracker_lines.decode_report, tracker_lines.encode),
        seeds=(
            tracker_lines.encode(
                tracker_lines.TrackVerdict(router="api", track="t", up=True, value=3, detail="200 OK", at=1.0)
            ),
            tracker_lines.encode(tracker_lines.CommandEnded(router="api", words=("a",), outcome="exited 0")),
        ),
        errors=(tracker_lines.TrackerLineError,),
        words=JSON_WORDS,
    ),
    Target(
        name="vrrp-takeover",
        run=round_trip(
            lambda line: vrrp_takeover.decode(control.decode_answer(line).values),
            lambda routers: control.encode_answer(good(routers=vrrp_takeover.encode(routers))),
        ),
        seeds=(control.encode_answer(good(routers=vrrp_takeover.encode([KNOWN_ROUTER]))),),
        errors=(control.ControlError,),
        words=JSON_WORDS,
    ),
    Target(
        name="checksummed-json",
        run=unsealed,
        seeds=(checksummed_json.checksummed(b'{"a":1}'), checksummed_json.checksummed(b"{}"), b'{"a":1}'),
        errors=(checksummed_json.ChecksumError,),
        words=(b'"sha256":"', b'"}'),
    ),
    Target(
        name="connect-failure",
        run=round_trip(connect_failure.decode, lambda said: connect_failure.encode(said.pool, said.server)),
        seeds=(connect_failure.encode("masters", "master-0"),),
        errors=(connect_failure.ConnectFailureError,),
        words=JSON_WORDS,
    ),
    Target(
        name="worker-arguments",
        run=round_trip(
            lambda data: worker_arguments.decode([data.decode(errors="surrogateescape")]),
            lambda orders: "".join(worker_arguments.encode(orders)).encode(),
        ),
        seeds=("".join(worker_arguments.encode(ORDERS)).encode(),),
        errors=(worker_arguments.WorkerArgumentsError,),
        words=JSON_WORDS,
    ),
    Target(
        name="succession",
        run=round_trip(
            lambda line: succession.party(control.decode_answer(line).values),
            lambda party: control.encode_answer(good(**succession.values_of(party))),
        ),
        seeds=(control.encode_answer(good(**succession.values_of(Party(version="1.0", instance="7-a")))),),
        errors=(control.ControlError, succession.SuccessionError),
        words=JSON_WORDS,
    ),
    Target(
        name="succession-command",
        run=round_trip(
            lambda line: succession.wanted_command(control.decode_question(line)),
            lambda command: control.encode_question(succession.wanted(command)),
        ),
        seeds=(control.encode_question(succession.wanted(("/usr/bin/appliance", "-x"))),),
        errors=(control.ControlError, succession.SuccessionError),
        words=JSON_WORDS,
    ),
    Target(
        name="succession-predecessor",
        run=round_trip(
            lambda data: succession.decode_predecessor(data.decode(errors="surrogateescape")),
            lambda left: succession.encode_predecessor(left).encode(),
        ),
        seeds=(succession.encode_predecessor(Predecessor(connection=3, pid=4, version="1.0")).encode(),),
        errors=(succession.SuccessionError,),
        words=JSON_WORDS,
    ),
    Target(
        name="reload-status",
        run=status_round_trip(reload_status.ReloadStatus),
        seeds=(control.encode_answer(good(program="reload", version="1.0", reloads={"done": 1})),),
        errors=(control.ControlError, status_answer.StatusAnswerError),
        words=JSON_WORDS,
    ),
    Target(
        name="proxy-status",
        run=status_round_trip(proxy_status.ProxyStatus),
        seeds=(control.encode_answer(good(program="proxy-api", generation=3)),),
        errors=(control.ControlError, status_answer.StatusAnswerError),
        words=JSON_WORDS,
    ),
    Target(
        name="status-answer",
        run=status_round_trip(status_answer.StatusAnswer),
        seeds=(control.encode_answer(good(program="health", pid=7, not_kept={"weights": "disk full"})),),
        errors=(control.ControlError, status_answer.StatusAnswerError),
        words=JSON_WORDS,
    ),
    Target(
        name="worker-status",
        run=status_round_trip(worker_status.WorkerStatus),
        seeds=(control.encode_answer(good(**status_answer.encode(STATUS))),),
        errors=(control.ControlError, status_answer.StatusAnswerError),
        words=JSON_WORDS,
    ),
    Target(
        name="vrrp-status",
        run=status_round_trip(vrrp_status.VrrpStatus),
        seeds=(control.encode_answer(good(**vip_answers.answer(vip_answers.router()))),),
        errors=(control.ControlError, status_answer.StatusAnswerError),
        words=JSON_WORDS,
    ),
    Target(
        name="linger-report",
        run=reported,
        seeds=(_report("10.0.0.200", 4, SOURCE), _report("2001:db8::200", 6, SOURCE)),
        errors=(linger_report.LingerReportError,),
        mend=signed_anew,
    ),
    Target(
        name="linger-strays",
        run=told,
        seeds=(
            _told("10.0.0.7", "10.0.0.200", 4, SOURCE),
            _told("2001:db8::7", "2001:db8::200", 6, SOURCE),
        ),
        errors=(linger_report.LingerReportError,),
        mend=signed_anew,
    ),
    Target(
        name="linger-node",
        run=told_node,
        seeds=(_node("https://10.0.0.3:9444"), _node("http://:80"), _node("")),
        errors=(linger_report.LingerReportError,),
        mend=signed_anew,
    ),
    Target(
        name="linger-status",
        run=status_round_trip(linger_status.LingerStatus),
        seeds=(control.encode_answer(good(**status_answer.encode(LINGER_STATUS))),),
        errors=(control.ControlError, status_answer.StatusAnswerError),
        words=JSON_WORDS,
    ),
    Target(
        name="node-answers-status",
        run=round_trip(node_answers.status, msgspec.json.encode),
        seeds=(NODE_STATUS, b"Welcome\n" + NODE_STATUS),
        errors=(node_answers.NodeAnswerError,),
        words=JSON_WORDS,
    ),
    Target(
        name="node-answers-verdict",
        run=round_trip(node_answers.verdict, msgspec.json.encode),
        seeds=(b'{"ok": false, "step": "checked", "errors": [{"message": "m", "line": 3}], "runs": true}',),
        errors=(node_answers.NodeAnswerError,),
        words=JSON_WORDS,
    ),
    Target(
        name="node-answers-values",
        run=round_trip(node_answers.values, msgspec.json.encode),
        seeds=(b'[{"pool": "masters", "server": "m-0", "state": "drain"}]',),
        errors=(node_answers.NodeAnswerError,),
        words=JSON_WORDS,
    ),
    Target(
        name="redirect-status",
        run=status_round_trip(redirect_status.RedirectStatus),
        seeds=(control.encode_answer(good(**status_answer.encode(REDIRECT_STATUS))),),
        errors=(control.ControlError, status_answer.StatusAnswerError),
        words=JSON_WORDS,
    ),
    Target(
        name="forward-status",
        run=status_round_trip(forward_status.ForwardStatus),
        seeds=(control.encode_answer(good(**status_answer.encode(FORWARD_STATUS))),),
        errors=(control.ControlError, status_answer.StatusAnswerError),
        words=JSON_WORDS,
    ),
    Target(
        name="health-board",
        run=board(health_board.decode, health_board.encode),
        seeds=(health_board.encode(boards.health_board(boards.health(), boards.health("b"))),),
        errors=(BoardFormatError,),
    ),
    Target(
        name="worker-board",
        run=board(worker_board.decode, worker_board.encode),
        seeds=(
            worker_board.encode(
                boards.worker(
                    frontends=(boards.frontend_counters(total=3),),
                    servers=(boards.server_counters(total=3), boards.server_counters("b")),
                )
            ),
        ),
        errors=(BoardFormatError,),
    ),
    Target(
        name="ended-workers",
        run=round_trip(ended_workers.decode, ended_workers.encode),
        seeds=(ended_workers.encode(ENDED), b"{}", b'{"workers":1}'),
        errors=(ended_workers.EndedWorkersError,),
        words=JSON_WORDS,
    ),
    Target(
        name="history-ring",
        run=history,
        seeds=(MINUTE, b'{"number":0,"total":[0,0,0,0]}'),
        errors=(history_ring.HistoryError,),
        words=JSON_WORDS,
    ),
    Target(
        name="commands",
        run=command_line,
        seeds=(
            b"show info;show stat -1 4 -1",
            b"set server masters/m0 state drain",
            b"set weight masters/m0 50%",
            b"shutdown sessions server masters/m0;prompt;show servers state masters",
        ),
        words=(b";", b"/", b"%", b" -1", b"set server ", b"state ", b"weight "),
    ),
    Target(
        name="exposition",
        run=accept_header,
        seeds=(
            b"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            b"*/*",
        ),
        words=(b",", b";", b"q=0"),
    ),
    Target(
        name="vrrp-board",
        run=board(vrrp_board.decode, vrrp_board.encode),
        seeds=(vrrp_board.encode(VRRP_BOARD),),
        errors=(BoardFormatError,),
    ),
    *(
        Target(
            name=f"answers-{name}",
            run=lambda data, kind=kind: api_answer(data, kind),
            seeds=seeds,
            errors=(answers.AnswerError, TooManyObjectsError),
            words=API_WORDS,
        )
        for name, kind, seeds in API_ANSWERS
    ),
    Target(
        name="kubeconfig",
        run=kubeconfig.decode,
        seeds=(KUBECONFIG,),
        errors=(kubeconfig.KubeconfigError,),
        words=(b"exec: {}", b"&a *a", b"current-context: a", b"https://[", b"token: |"),
    ),
    Target(
        name="discovery-status",
        run=status_round_trip(discovery_status.DiscoveryStatus),
        seeds=(control.encode_answer(good(**status_answer.encode(DISCOVERY_STATUS))),),
        errors=(control.ControlError, status_answer.StatusAnswerError),
        words=JSON_WORDS,
    ),
    Target(
        name="announce-status",
        run=status_round_trip(announce_status.AnnounceStatus),
        seeds=(control.encode_answer(good(**status_answer.encode(ANNOUNCE_STATUS))),),
        errors=(control.ControlError, status_answer.StatusAnswerError),
        words=JSON_WORDS,
    ),
    Target(
        name="bird-answers",
        run=bird_answer,
        seeds=(b"1002-a BGP --- up\n1006-  BGP state: Up\n     Routes: 0 imported, 1 exported\n \n0000 \n",),
        errors=(bird_answers.BirdAnswerError,),
        words=(b"\n0000 \n", b"9001 ", b"1002-", b"BGP", b" exported", b"10.0.0.1 - Up\n"),
    ),
    Target(
        name="conntrackd-control",
        run=conntrackd_control.statistics,
        seeds=(CONNTRACKD,),
        errors=(conntrackd_control.ConntrackdAnswerError,),
        words=(b"external inject:", b" Pckts sent ", b"connections created:", b"99999999999999999999999 "),
    ),
    Target(
        name="ovf-environment",
        run=ovf_environment.parse,
        seeds=(ovf.environment({"lb.hostname": "lb-1", "lb.config": "a: 1\n", "lb.dns": "10.0.0.2"}),),
        errors=(ovf_environment.OvfEnvironmentError,),
        words=(b"<!DOCTYPE a [", b"<!ENTITY a 'b'>", b"&a;", b"<a>", b"&#0;", b"encoding='x'", b"<Property "),
    ),
    Target(
        name="release-signature",
        run=signed_release,
        seeds=(SIGNATURE, SIGNATURE + b"\x1f\x8b"),
        errors=(release_signature.SignatureError,),
        words=(
            b"-----BEGIN SSH SIGNATURE-----",
            b"-----END SSH SIGNATURE-----\n",
            b"AAAA",
            b"////",
            b"=",
            b"\n",
        ),
    ),
    Target(
        name="nftables-answer",
        run=nftables_answer.decode,
        seeds=(
            b'{"nftables": [{"metainfo": {}}, {"rule": {"comment": "on api/k", "expr": []}}]}',
            b'{"nftables": [{"chain": {"family": "ip", "table": "ocp_nat", "prio": -100, "handle": 1}}]}\n',
        ),
        errors=(nftables_answer.NftablesAnswerError,),
        words=(b'"rule"', b'{"nftables": [', b"null", b"\\ud800", b"1e999"),
    ),
    Target(
        name="stray-keys",
        run=lambda key: [stray_keys.decode(key, family=family) for family in (4, 6)],
        seeds=(bytes(24), bytes(48)),
    ),
    Target(
        name="sockaddr", run=address, seeds=(b"\x02\0\x24\xe5\x0a\0\0\x01", b"\x0a\0\x24\xe5" + bytes(24))
    ),
)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_no_input_breaks_a_decoder(target: Target, fuzz_seconds: float, fuzz_seed: int):
    """Any bytes are a value that can be said again, need more, or are the one error; soon, in little room."""
    assert fuzz(target, seconds=fuzz_seconds, seed=fuzz_seed) > len(target.seeds)


def test_every_decoder_is_fed():
    """A module that is added to `wire` needs a target of its name, or has nothing to decode."""
    modules = {path.stem.replace("_", "-") for path in Path(wire.__file__).parent.rglob("*.py")}
    fed = {module for module in modules for target in TARGETS if target.name.startswith(module)}
    undecoded = {"--init--", "need", "literal", "internet-checksum", "hmac-trailer", "nftables-commands"}
    undecoded |= {"requests", "objects", "ended-connections"}
    undecoded |= {
        "statistics",
        "syslog",
        "tcp-segment",
        "tcp-state",
        "bird-config",
        "conntrackd-config",
        "bird-example",
        "frr-example",
    }
    undecoded |= {"placeholder"}
    assert modules - fed <= undecoded
