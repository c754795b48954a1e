"""Sessions of every kind move there and back, and nobody notices while new ones begin."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import trustme
from support.discovery.kube_api import NODES, TOKEN, KubeApi, KubeCluster, node
from support.linger.linger_field import PORT, VIP
from support.migrate import sized_server
from support.migrate.migrate_field import MigratingNode, fill, leave, migrating_nodes, settle, take_back
from support.network.checked_streams import CheckedStreams
from support.network.greeted_clients import GreetedClients
from support.network.namespaces import Node
from support.network.ports import accepts
from support.peers.nginx import nginx
from support.processes.waiting import wait_until
from support.run import tools
from support.values.certificates import issue

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", "openssl", "nginx", "curl", "kubectl", root=True),
    pytest.mark.slow("moves of whole appliances"),
]

_SIZED: Final = 7002
_PROXIED: Final = 7003
_HTTP2: Final = 7004
_ENDED: Final = 7005
_WATCHED: Final = 7006
_LARGE: Final = 64 << 20
"""More bytes than all buffers on the way hold: the server is still sending when the session moves."""

_SMALL: Final = 6 << 20
"""So few that the server has sent its FIN by then."""

_STREAMS: Final = 300  # of each family; fewer meet none of the new connections' ports by chance
_SECONDS: Final = 60.0
_PART: Final = 100_000


def _there_and_back(one: MigratingNode, two: MigratingNode, check: Iterator[None]) -> None:
    """Move all sessions to two while one is off, and back while two is off; `check` after each."""
    leave(one, two)
    one.node.unplug()
    next(check)
    one.node.plug()
    settle(two, [one, two])
    take_back(two, one)
    two.node.unplug()
    next(check)
    two.node.plug()


@contextlib.contextmanager
def _servers(server: Node, directory: Path, cluster: KubeCluster) -> Iterator[None]:
    """Start the servers of the kinds."""
    for port, size, *more in ((_SIZED, _LARGE), (_ENDED, _SMALL), (_PROXIED, _LARGE, "--proxied")):
        server.start([sys.executable, sized_server.__file__, str(port), str(size), *map(str, more)])
    with contextlib.ExitStack() as stack:
        with server.inside():
            stack.enter_context(KubeApi(cluster, trustme.CA(), host=server.address, port=_WATCHED))
            web = stack.enter_context(nginx(port=_HTTP2, certificates=issue(directory, VIP)))
            wait_until(lambda: all(map(accepts, (_SIZED, _ENDED, _PROXIED))), what="the servers accept")
        (web.www / "large").write_bytes(sized_server.content(_LARGE))
        yield


def _connected(client: Node, port: int) -> socket.socket:
    """Return a connection that holds little in its queue."""
    with client.inside():
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        made.settimeout(_SECONDS)
        made.connect((VIP, port))
    return made


def _read(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size and (piece := connection.recv(min(65536, size - len(data)))):
        data += piece
    return bytes(data)


@pytest.mark.promise("docs/taking-a-node-away.md", "sessions of every kind move")
def test_every_kind_of_session(tmp_path: Path):
    """Each moves twice, and each byte is checked; one is not read meanwhile, one is half-closed."""
    content, received, cluster = sized_server.content(_LARGE), dict[str, bytes](), KubeCluster()
    with (
        migrating_nodes(
            2,
            tmp_path,
            more={
                # The half-closed one is read last: until then nothing moves on it.
                _SIZED: {"timeouts": {"server_fin": "1m"}},
                _ENDED: {},
                _PROXIED: {"send_proxy": "v2", "check": {"type": "none"}},
                _HTTP2: {},
                _WATCHED: {},
            },
            serve=lambda server: _servers(server, tmp_path, cluster),
        ) as (client, (one, two)),
        contextlib.ExitStack() as stack,
    ):
        idle = stack.enter_context(_connected(client, PORT))
        assert _read(idle, 7) == b"server\n"
        sized = {
            "blocked": stack.enter_context(_connected(client, _SIZED)),
            "blocked at the end": stack.enter_context(_connected(client, _ENDED)),
            "half-closed": stack.enter_context(_connected(client, _SIZED)),
            "PROXY": stack.enter_context(_connected(client, _PROXIED)),
        }
        sized["half-closed"].shutdown(socket.SHUT_WR)
        for name, each in sized.items():
            received[name] = _read(each, _PART)
        curl, body = _curl(client, tmp_path)
        stack.callback(curl.kill)
        head = os.read(body, _PART)
        seen = _kubectl(client, tmp_path / "events")
        cluster.put(NODES, node("first", "192.0.2.1"))
        wait_until(lambda: len(seen()) == 1, what="kubectl shows an event")

        def check() -> Iterator[None]:
            for number in range(2):
                idle.sendall(bytes([number]))
                assert idle.recv(10) == bytes([number])
                for name, each in sized.items():
                    if not name.startswith("blocked"):
                        received[name] += _read(each, _PART)
                cluster.put(NODES, node(f"after move {number}", "192.0.2.1"))
                wait_until(lambda: len(seen()) >= number + 2, what="kubectl shows an event")  # noqa: B023  # called at once
                yield

        _there_and_back(one, two, check())
        assert seen() == ["first", "after move 0", "after move 1"]
        for name, each in sized.items():
            received[name] += _read(each, len(content))
        assert received.pop("blocked at the end") == sized_server.content(_SMALL)
        assert {name: data == content for name, data in received.items()} == dict.fromkeys(received, True)
        with os.fdopen(body, "rb") as rest:
            assert head + rest.read() == content
        assert curl.wait(_SECONDS) == 0
        assert curl.stdout is not None
        assert curl.stdout.read() == b"2"
        assert one.migrated()["lost"] == two.migrated()["lost"] == 0
        assert one.migrated()["given"] == two.migrated()["given"] == 7


def _curl(client: Node, directory: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start curl with HTTP/2, which goes on only while its body is read; return it and the body."""
    fifo = directory / "body"
    os.mkfifo(fifo)
    with client.inside():
        process = subprocess.Popen(
            [
                *(tools.path("curl") or "curl", "-sk", "--http2", "-o", str(fifo)),
                *("-w", "%{http_version}", f"https://{VIP}:{_HTTP2}/large"),
            ],
            stdout=subprocess.PIPE,
        )
    return process, os.open(fifo, os.O_RDONLY)


def _kubectl(client: Node, shown: Path) -> Callable[[], list[str]]:
    """Start kubectl with one request that watches nodes; return what lists the events that it has shown."""
    wanted = f"{NODES}?watch=1&resourceVersion=1000&timeoutSeconds=600"
    options = ("--server", f"https://{VIP}:{_WATCHED}", "--insecure-skip-tls-verify", "--token", TOKEN)
    with shown.open("wb") as output:
        client.start(["kubectl", *options, "get", "--raw", wanted], output=output)

    def seen() -> list[str]:
        lines = shown.read_text().splitlines(keepends=True)
        return [json.loads(each)["object"]["metadata"]["name"] for each in lines if each.endswith("\n")]

    return seen


def test_no_new_connection_is_refused(tmp_path: Path):
    """300 a second go on, and so do streams: a node that was left is cut off, at last it is destroyed.

    When it gets its addresses back, its new connections use no port of those that are not back yet, also if
    its `migrate` was started again meanwhile.
    """
    with (
        migrating_nodes(2, tmp_path) as (client, (one, two)),
        CheckedStreams(client, port=PORT, period=0.1) as streams,
        GreetedClients(client, VIP, PORT, rate=300) as clients,
    ):
        fill(streams, _STREAMS)

        def check() -> Iterator[None]:
            for away in one, two:
                clients.wait_for_more(300)
                away.appliance.wait_for_restart("migrate", away.appliance.kill("migrate"))
                yield

        clients.wait_for_more(300)
        _there_and_back(one, two, check())
        settle(one, [one, two])
        one.appliance.command("leave", "--within", "60s")
        one.node.close()
        one.appliance.remove_sockets()
        streams.go_on()
        clients.wait_for_more(300)
        assert clients.stop().errors == {}
        assert streams.report().ended == {}
