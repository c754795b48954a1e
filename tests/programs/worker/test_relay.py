"""A worker between a client and a server, both of them the test: bytes, ends, errors and choices."""

import hashlib
import os
import socket
import threading

import pytest
from support.network.foreign_sockets import idle_options
from support.processes.waiting import wait_until
from support.worker.trace import Origin, Setting, is_reset, read_all, relay, reset

from appliance.model.end_reasons import EndReason
from appliance.model.server_states import HealthVerdict
from appliance.model.snapshot.frontends import KeepAlive
from appliance.model.snapshot.pools import Balance, SendProxy
from appliance.wire.proxy_protocol import decode

pytestmark = pytest.mark.programs

BULK = 64 << 20


@pytest.mark.promise("data path", "bytes pass, compiled and plain")
@pytest.mark.promise("program", "worker")
def test_bytes_pass_both_ways():
    """What either side sends reaches the other, and the board counts it as seen from the client."""
    with relay(Setting(origins=[Origin()])) as running:
        client, server = running.pair()
        client.sendall(b"question")
        assert server.recv(100) == b"question"
        server.sendall(b"answer!")
        assert client.recv(100) == b"answer!"
        client.close()
        server.close()
        running.ended(EndReason.COMPLETED)
        front = running.worker.board().frontends[0]
        assert (front.current, front.total, front.bytes_in, front.bytes_out) == (0, 1, 8, 7)
        counted = running.server()
        assert (counted.current, counted.total, counted.bytes_in, counted.bytes_out) == (0, 1, 8, 7)


def test_server_may_speak_first():
    """A greeting passes before the client has said anything."""
    with relay(Setting(origins=[Origin()])) as running:
        client, server = running.pair()
        server.sendall(b"220 hello")
        assert client.recv(100) == b"220 hello"


@pytest.mark.promise("data path", "a half-close is passed on, compiled and plain")
def test_client_half_close_is_passed_on():
    """A client that has ended its half still gets the whole answer."""
    with relay(Setting(origins=[Origin()])) as running:
        client, server = running.pair()
        client.sendall(b"question")
        client.shutdown(socket.SHUT_WR)
        assert read_all(server) == b"question"
        server.sendall(b"answer")
        server.close()
        assert read_all(client) == b"answer"
        running.ended(EndReason.COMPLETED)


def test_server_half_close_is_passed_on():
    """A server that has ended its half still gets what the client sends."""
    with relay(Setting(origins=[Origin()])) as running:
        client, server = running.pair()
        server.sendall(b"greeting")
        server.shutdown(socket.SHUT_WR)
        assert read_all(client) == b"greeting"
        client.sendall(b"more")
        client.close()
        assert read_all(server) == b"more"
        server.close()
        running.ended(EndReason.COMPLETED)


def test_client_that_ends_at_once_is_passed_on():
    """A connection on which nothing is ever said ends cleanly on both sides."""
    with relay(Setting(origins=[Origin()])) as running:
        running.connect().close()
        server = running.setting.origins[0].accept()
        assert read_all(server) == b""
        server.close()
        running.ended(EndReason.COMPLETED)


def _pour(connection: socket.socket, data: bytes) -> threading.Thread:
    def send() -> None:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def _digest(connection: socket.socket) -> str:
    digest = hashlib.sha256()
    while chunk := connection.recv(1 << 18):
        digest.update(chunk)
    return digest.hexdigest()


@pytest.mark.promise("data path", "bulk arrives whole, compiled and plain")
@pytest.mark.promise("kernel", "splice")
def test_bulk_both_ways_at_once_is_intact():
    """64 MB each way at the same time arrive whole: spliced, with both sides' buffers full."""
    up, down = (os.urandom(1 << 20) * (BULK >> 20) for _ in range(2))
    with relay(Setting(origins=[Origin()])) as running:
        client, server = running.pair()
        senders = [_pour(client, up), _pour(server, down)]
        got: dict[str, str] = {}
        taker = threading.Thread(target=lambda: got.update(up=_digest(server)))
        taker.start()
        got["down"] = _digest(client)
        for thread in (*senders, taker):
            thread.join()
        assert got == {"up": hashlib.sha256(up).hexdigest(), "down": hashlib.sha256(down).hexdigest()}
        running.ended(EndReason.COMPLETED)
        assert running.server().bytes_in == running.server().bytes_out == BULK


def test_small_after_bulk_still_passes():
    """A direction that was bulk goes back to copying: the pipe is lent again, single bytes pass."""
    data = os.urandom(4 << 20)
    with relay(Setting(origins=[Origin()])) as running:
        client, server = running.pair()
        for _ in range(3):
            sender = threading.Thread(target=client.sendall, args=(data,))
            sender.start()
            got = b""
            while len(got) < len(data):
                got += server.recv(1 << 18)
            sender.join()
            assert got == data
            client.sendall(b"x")
            assert server.recv(10) == b"x"


def test_stuck_reader_stops_the_sender():
    """A client that does not read costs one pipe and full socket buffers, not memory; then it gets all."""
    with relay(Setting(origins=[Origin()])) as running:
        client, server = running.pair()
        client.sendall(b"go")
        assert server.recv(10) == b"go"
        server.setblocking(False)  # noqa: FBT003  # the standard library's signature
        sent = 0
        chunk = os.urandom(1 << 16)
        before = _rss(running.worker.pid)

        def jammed() -> bool:
            nonlocal sent
            try:
                while True:
                    sent += server.send(chunk)
            except BlockingIOError:
                return running.sessions()[0]["bytes_out"] == jammed.seen or not _note(jammed, running)

        jammed.seen = -1  # type: ignore[attr-defined]  # what was seen last time
        wait_until(jammed, what="nothing moves any more")
        assert _rss(running.worker.pid) - before < 4 << 20
        server.close()
        assert len(read_all(client)) == sent


def _note(jammed: object, running: object) -> bool:
    jammed.seen = running.sessions()[0]["bytes_out"]  # type: ignore[attr-defined]  # the two of the test above
    return True


def _rss(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:  # noqa: PTH123  # a file of the kernel
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_slow_reader_gets_all_after_the_end():
    """A server that is still busy with what came before the client's FIN is given time, and may answer."""
    data = os.urandom(1 << 20)
    setting = Setting(origins=[Origin(buffer=16384)], back={"timeout_server_fin": 1.0})
    with relay(setting) as running:
        client, server = running.pair()
        sender = _pour(client, data)
        got = b""
        pause = threading.Event()
        while chunk := server.recv(1 << 16):
            got += chunk
            pause.wait(0.05)
        sender.join()
        assert got == data
        server.sendall(b"done")
        server.close()
        assert read_all(client) == b"done"


@pytest.mark.parametrize("amount", [0, 100, 1 << 20])
def test_client_reset_resets_the_server(amount: int):
    """A client that is reset in mid-transfer is no clean end for its server."""
    with relay(Setting(origins=[Origin()])) as running:
        client, server = running.pair()
        client.sendall(b"x" * amount)
        server.sendall(b"y")
        assert client.recv(1) == b"y"
        reset(client)
        assert is_reset(server)
        running.ended(EndReason.CLIENT_ABORT)


@pytest.mark.promise("data path", "a reset is passed on, compiled and plain")
@pytest.mark.parametrize("amount", [0, 100, 1 << 20])
def test_server_reset_resets_the_client(amount: int):
    """A server that dies in mid-transfer is no clean end for its client."""
    with relay(Setting(origins=[Origin()])) as running:
        client, server = running.pair()
        client.sendall(b"x")
        assert server.recv(1) == b"x"
        sender = threading.Thread(target=server.sendall, args=(b"y" * amount,))
        sender.start()
        received = 0
        while received < amount:
            received += len(client.recv(1 << 16))
        sender.join()
        reset(server)
        assert is_reset(client)
        running.ended(EndReason.SERVER_ABORT)


def test_refused_connection_goes_to_another_server():
    """A server that refuses costs its client nothing: the next one gets connection and first bytes."""
    origins = [Origin(), Origin()]
    origins[0].close()
    with relay(Setting(origins=origins)) as running:
        for number in range(4):
            client = running.connect()
            client.sendall(b"hello %d" % number)
            assert origins[1].accept().recv(100) == b"hello %d" % number
        reasons = running.reasons()
        running.until(
            lambda: running.reasons().get(EndReason.REDISPATCHED, 0) >= 1, "a redispatch is counted"
        )
        reasons = running.reasons()
        assert (
            reasons[EndReason.CONNECT_REFUSED]
            == reasons[EndReason.REDISPATCHED]
            == running.server("s0").failed
        )


def test_only_server_is_tried_again_and_given_up():
    """The last server is tried again after a while; in the end the client is told with a reset."""
    origin = Origin()
    origin.close()
    setting = Setting(origins=[origin], back={"retries": 2, "timeout_connect": 0.1})
    with relay(setting) as running:
        assert running.refuses()
        running.ended(EndReason.CONNECT_REFUSED, 3)
        assert running.reasons()[EndReason.RETRIED] == 2
        assert running.server().failed == 3
        assert running.worker.board().frontends[0].failed == 1


def test_server_that_never_answers_is_left_for_another():
    """A connect without an answer ends at its timeout, and the other server gets the connection."""
    silent, good = Origin(backlog=0), Origin()
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)  # noqa: FBT003  # the standard library's signature
        filler.connect_ex(("127.0.0.1", silent.port))
    setting = Setting(origins=[silent, good], back={"timeout_connect": 0.2})
    with relay(setting) as running:
        client = running.connect()
        client.sendall(b"hello")
        assert good.accept().recv(10) == b"hello"
        running.until(lambda: running.reasons().get(EndReason.REDISPATCHED) == 1, "redispatched")
        assert running.reasons()[EndReason.CONNECT_TIMEOUT] == 1


def test_no_server_up_refuses():
    """With all servers down the client is refused at once."""
    with relay(Setting(origins=[Origin()])) as running:
        running.publish(HealthVerdict.DOWN)
        running.until(lambda: running.refuses(timeout=0.5), "refused")
        running.until(lambda: EndReason.NO_SERVER in running.reasons(), "counted")


@pytest.mark.parametrize(("bound", "server"), [("::", "127.0.0.1"), ("::", "::1"), ("127.0.0.1", "::1")])
def test_both_families_on_both_sides(bound: str, server: str):
    """Clients and servers of either family meet; a dual-stack listener takes both, and names them rightly."""
    with relay(Setting(origins=[Origin(host=server)], host=bound)) as running:
        for client_host in ("127.0.0.1", "::1") if bound == "::" else ("127.0.0.1",):
            client = socket.create_connection((client_host, running.setting.port), timeout=10)
            client.sendall(b"hi")
            assert running.setting.origins[0].accept().recv(10) == b"hi"
            name = f"[{client_host}]" if ":" in client_host else client_host
            port = client.getsockname()[1]
            assert f"{name}:{port}" in {each["client"] for each in running.sessions()}


@pytest.mark.promise("docs/faq.md", "a server learns the client's address by the PROXY header")
@pytest.mark.parametrize("version", [SendProxy.V1, SendProxy.V2])
def test_proxy_header_comes_first(version: SendProxy):
    """A server that wants it learns the client's address before the first byte, even of a silent client."""
    with relay(Setting(origins=[Origin()], back={"send_proxy": version})) as running:
        client, server = running.pair()
        header = decode(server.recv(200))
        assert header.source == client.getsockname()
        assert header.destination == client.getpeername()
        client.sendall(b"hello")
        assert server.recv(10) == b"hello"


@pytest.mark.promise("kernel", "TCP keepalive and user timeout")
def test_options_are_set_on_both_sides():
    """Keepalive and user timeout hold towards clients and servers, as the kernel shows."""
    keepalive = KeepAlive(idle=77.0, interval=5.0, count=3)
    timeouts = {"keepalive": keepalive, "tcp_user_timeout": 33.0}
    with relay(Setting(origins=[Origin()], front=timeouts, back=timeouts)) as running:
        ends = running.pair()
        running.until(
            lambda: idle_options(running.worker.pid) == [(1, 77, 5, 3, 33_000)] * 2, "both sides have them"
        )
        assert len(ends) == 2


def test_source_balance_keeps_a_client_on_its_server():
    """All connections of one address go to one server; other addresses use the others too."""
    origins = [Origin() for _ in range(3)]
    with relay(Setting(origins=origins, back={"balance": Balance.SOURCE})) as running:
        used = set()
        for last in range(1, 13):
            clients = [running.connect(source=f"127.0.0.{last}") for _ in range(3)]
            running.until(lambda: len(running.sessions()) == 3, "three sessions")  # used at once
            running.until(lambda: all(each["server"] for each in running.sessions()), "placed")
            chosen = {str(each["server"]) for each in running.sessions()}
            assert len(chosen) == 1
            used |= chosen
            for client in clients:
                reset(client)
            running.worker.ask("kill", source="127.0.0.0/8")
            running.until(lambda: not running.sessions(), "no session")
        assert len(used) > 1


def test_linger_of_a_clean_end_leaves_no_port_behind():
    """When the client ends first the server sees a FIN and answers it; nothing is reset on the way."""
    with relay(Setting(origins=[Origin()])) as running:
        client, server = running.pair()
        client.sendall(b"bye")
        client.close()
        assert read_all(server) == b"bye"
        server.close()
        running.ended(EndReason.COMPLETED)
