"""Strangers at the port of `migrate`: they get no session and give none, and moves go on beside them."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from support.linger.linger_field import PORT
from support.migrate.migrate_field import (
    MIGRATE_PORT,
    MigratingNode,
    certificate,
    fill,
    leave,
    migrating_nodes,
    take_back,
)
from support.network.checked_streams import CheckedStreams
from support.network.namespaces import Node
from support.processes.waiting import wait_until

from appliance.wire.session_migration import MESSAGE_LIMIT, VERSION, Ask, Commit, Hello, encode

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", "openssl", root=True)]

_COUNT: Final = 20  # sessions of each family
_SECONDS: Final = 20.0  # for an answer
_BATCH: Final = bytes(range(16))
_HELLO: Final = encode(Hello(version=VERSION, run=_BATCH))


@contextlib.contextmanager
def _plain(client: Node, node: MigratingNode) -> Iterator[socket.socket]:
    with client.inside():
        made = socket.create_connection((node.node.address, MIGRATE_PORT), timeout=_SECONDS)
    with made:
        yield made


@contextlib.contextmanager
def _secured(client: Node, node: MigratingNode, own: Path | None) -> Iterator[ssl.SSLSocket]:
    """Connect with a certificate of one's own, or without any."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if own is not None:
        context.load_cert_chain(own)
    with _plain(client, node) as plain, context.wrap_socket(plain) as made:
        yield made


def _rest(connection: socket.socket) -> bytes:
    """Return what is sent until the end of a connection."""
    data = bytearray()
    with contextlib.suppress(ConnectionResetError, ssl.SSLError):
        while piece := connection.recv(65536):
            data += piece
    return bytes(data)


@pytest.mark.promise("docs/taking-a-node-away.md", "only nodes of the pair take and give sessions")
def test_a_stranger_is_refused_and_a_member_kept_to_the_rules(tmp_path: Path):
    """Without the certificate nothing is answered, and what a member may not send ends its connection."""
    with migrating_nodes(1, tmp_path) as (client, (node,)):
        wait_until(lambda: node.migrated().get("taken") == 0, what="migrate answers")
        for own in (None, certificate(tmp_path, "stranger")):
            with _secured(client, node, own) as stranger:
                with contextlib.suppress(OSError):
                    stranger.sendall(_HELLO)
                assert _rest(stranger) == b""
        with _plain(client, node) as stranger:
            stranger.sendall(_HELLO)
            assert _HELLO not in _rest(stranger)
        for wrong in (
            b"\xff" * 100,
            (MESSAGE_LIMIT + 1).to_bytes(4, "big"),
            encode(Hello(version=VERSION + 1, run=_BATCH)),
        ):
            with _secured(client, node, tmp_path / "nodes.pem") as member:
                member.sendall(wrong)
                _assert_only_hello(_rest(member))
        for wrong in (encode(Commit(batch=_BATCH, places=(0,))), _HELLO, b"\x00\x00\x00\x05damag"):
            with _secured(client, node, tmp_path / "nodes.pem") as member:
                member.sendall(_HELLO + wrong)
                _assert_only_hello(_rest(member))
        assert node.migrated()["taken"] == 0


def _assert_only_hello(data: bytes) -> None:
    """The node has sent its greeting at most, and has ended the connection."""
    assert len(data) <= len(_HELLO)


@pytest.mark.slow("whole appliances on a segment of their own")
def test_recorded_bytes_are_of_no_use(tmp_path: Path):
    """What a member has sent, sent once more on another connection, is refused."""
    with migrating_nodes(1, tmp_path) as (client, (node,)):
        wait_until(lambda: node.migrated().get("taken") == 0, what="migrate answers")
        recorded = bytearray()
        mine, theirs = socket.socketpair()
        with _plain(client, node) as plain, mine, theirs:
            relay = threading.Thread(target=_relay, args=(theirs, plain, recorded.extend))
            relay.start()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.load_cert_chain(tmp_path / "nodes.pem")
            with context.wrap_socket(mine) as member:
                member.settimeout(_SECONDS)
                member.sendall(_HELLO + encode(Ask(batch=_BATCH)))
                answer = bytearray()
                while len(answer) <= len(_HELLO):  # its greeting, and the answer
                    answer += member.recv(65536)
            relay.join(_SECONDS)
        with _plain(client, node) as again:
            again.sendall(recorded)
            assert len(_rest(again)) < 4096  # TLS alone: its greeting and an alert
        wait_until(lambda: node.appliance.events("node-refused"), what="it is refused")


@pytest.mark.promise("docs/taking-a-node-away.md", "no session goes to a node without the certificate")
@pytest.mark.slow("whole appliances, and a time in which nothing moves")
def test_nothing_is_given_to_a_node_that_has_another_certificate(tmp_path: Path):
    """That node believes this one, and this one does not believe it: all sessions stay, and none ends."""
    stranger = {
        "certificate": str(certificate(tmp_path, "stranger")),
        "authorities": str(tmp_path / "nodes.pem"),
    }
    with (
        migrating_nodes(2, tmp_path, sessions={"two": stranger}) as (client, (one, two)),
        CheckedStreams(client, port=PORT, period=0.1) as streams,
    ):
        fill(streams, _COUNT)
        done = one.appliance.command("leave", "--within", "4s", check=False)
        assert done.returncode == 1
        assert f"{2 * _COUNT}: it could not be offered" in done.stderr
        reasons = [str(each["reason"]) for each in one.appliance.events("sessions-stay")]
        assert reasons
        for why in (done.stderr, *reasons):
            assert "certificate verify failed: self-signed certificate" in why
        streams.go_on()
        assert streams.report().ended == {}
        assert (one.migrated()["given"], two.migrated()["taken"]) == (0, 0)


def _relay(left: socket.socket, right: socket.socket, record: Callable[[bytes], None]) -> None:
    """Copy both ways until one side ends; record what comes from the left."""

    def back() -> None:
        with contextlib.suppress(OSError):
            while piece := right.recv(65536):
                left.sendall(piece)

    returning = threading.Thread(target=back)
    returning.start()
    with contextlib.suppress(OSError):
        while piece := left.recv(65536):
            record(piece)
            right.sendall(piece)
    with contextlib.suppress(OSError):
        right.shutdown(socket.SHUT_RDWR)
    returning.join(_SECONDS)


@pytest.mark.slow("fills all places of migrate")
def test_those_that_connect_and_send_nothing_hold_nothing_up(tmp_path: Path):
    """Silent connections, and one that stops within a message, at both nodes: all sessions move."""
    with (
        migrating_nodes(2, tmp_path) as (client, (one, two)),
        CheckedStreams(client, port=PORT, period=0.1) as streams,
        contextlib.ExitStack() as stack,
    ):
        fill(streams, _COUNT)
        for node in (one, two):
            for _ in range(300):
                stack.enter_context(_plain(client, node))
            member = stack.enter_context(_secured(client, node, tmp_path / "nodes.pem"))
            member.sendall(_HELLO + b"\x00\x00\x10\x00half")
        leave(one, two)
        streams.go_on()
        take_back(two, one)
        streams.go_on()
        assert streams.report().ended == {}
        assert [each.migrated()["given"] for each in (one, two)] == [2 * _COUNT] * 2
