"""Ten thousand real connections through one worker: every algorithm gives each server its share."""

import random
import socket
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address

import pytest
from support.network.ports import free_port
from support.peers.nginx import nginx
from support.values.snapshots import bind, frontend, group, pool, server, snapshot
from support.worker.lone_worker import lone_worker

from appliance.model.snapshot.pools import Balance

pytestmark = [
    pytest.mark.programs,
    pytest.mark.needs("nginx"),
    pytest.mark.slow("many connections, or real time-outs"),
]

_CONNECTIONS = 10_000
_AT_ONCE = 50
_HELD = 1000
_WEIGHTS = {"127.0.0.1": 1, "127.0.0.2": 2, "127.0.0.3": 3, "127.0.0.4": 4}
_REQUEST = b"GET /address HTTP/1.1\r\nHost: test\r\n\r\n"


@pytest.mark.parametrize("balance", [Balance.ROUNDROBIN, Balance.RANDOM])
def test_shares_follow_the_weights(balance: Balance):
    """Of 10,000 connections each server gets its ideal share, within 2 % of that share."""
    assert _served(balance) == _ideal(rel=0.02)


@pytest.mark.parametrize("balance", [Balance.SOURCE, Balance.HASH])
def test_shares_of_clients_follow_the_weights(balance: Balance):
    """Of 10,000 clients each server gets its ideal share, within 2 percentage points of all clients.

    A client's server depends on its address alone, not on what the others got, so that shares are a draw by
    lot: for the smallest, 1,000 of 10,000, the standard deviation is 30, and 2 % of 1,000 no promise.
    """
    assert _served(balance) == _ideal(abs=0.02 * _CONNECTIONS)


def test_leastconn_shares_follow_the_weights():
    """Of 10,000 connections that last equally long each server gets its ideal share, within 2 % of it."""
    with _worker(Balance.LEASTCONN) as port, _Held(port) as held:
        for _ in range(_CONNECTIONS):
            held.open()
            if len(held) > _HELD:
                held.close()
    assert held.counted == _ideal(rel=0.02)


def test_leastconn_refills_where_connections_end():
    """Whichever connections end, those that are held are shared by weight, within 2 % of all."""
    order = random.Random(3)  # noqa: S311  # the same in every run
    with _worker(Balance.LEASTCONN) as port, _Held(port) as held:
        for _ in range(3 * _HELD):
            held.open()
            if len(held) > _HELD:
                held.close(order.randrange(_HELD))
        assert held.servers() == _ideal(_HELD, abs=0.02 * _HELD)


def test_source_sends_a_client_to_the_same_server_in_every_worker():
    """Two workers that know nothing of each other agree on every client."""
    clients = [f"127.64.{number // 250}.{number % 250 + 1}" for number in range(500)]
    with _worker(Balance.SOURCE) as one, _worker(Balance.SOURCE) as other:
        assert list(_ask_all(one, clients)) == list(_ask_all(other, clients))


class _Held:
    """Connections that are held open after their answer, oldest first; `counted` are all there ever were."""

    def __init__(self, port: int) -> None:
        self.counted: Counter[str] = Counter()
        self._port = port
        self._open: deque[tuple[socket.socket, str]] = deque()

    def __enter__(self) -> "_Held":
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            self.close()

    def __len__(self) -> int:
        return len(self._open)

    def open(self) -> None:
        """Open one more."""
        connection = _connect(self._port)
        connection.sendall(_REQUEST)
        server = _answer(connection)
        self.counted[server] += 1
        self._open.append((connection, server))

    def close(self, position: int = 0) -> None:
        """Close one."""
        connection, _ = self._open[position]
        del self._open[position]
        connection.close()

    def servers(self) -> Counter[str]:
        """Return how many every server holds."""
        return Counter(server for _, server in self._open)


@contextmanager
def _worker(balance: Balance) -> Iterator[int]:
    """Run a worker with four servers of one nginx, on four addresses; gives its port."""
    port = free_port()
    listener = frontend(binds=[bind(port, host="0.0.0.0")], max_connections=5000)
    with nginx() as backend:
        servers = [
            server(address, host=address, port=backend.port, weight=weight)
            for address, weight in _WEIGHTS.items()
        ]
        wanted = snapshot(
            groups=[group(frontends=[listener])], pools=[pool(balance=balance, servers=servers)]
        )
        with lone_worker(wanted):
            yield port


def _ask_all(port: int, sources: Iterable[str]) -> Iterator[str]:
    """Connect from every source, and yield the server's address; some are under way at a time."""
    waiting: deque[socket.socket] = deque()
    for source in sources:
        connection = _connect(port, source)
        connection.sendall(_REQUEST)
        waiting.append(connection)
        if len(waiting) >= _AT_ONCE:
            yield _finish(waiting.popleft())
    while waiting:
        yield _finish(waiting.popleft())


def _finish(connection: socket.socket) -> str:
    with connection:
        return _answer(connection)


def _connect(port: int, source: str | None = None) -> socket.socket:
    mine = (source, 0) if source else None
    return socket.create_connection(("127.0.0.1", port), timeout=30.0, source_address=mine)


def _answer(connection: socket.socket) -> str:
    received = b""
    while b"\r\n\r\n" not in received or not received.endswith(b"\n"):
        chunk = connection.recv(4096)
        assert chunk, f"ended after {received!r}"
        received += chunk
    return received.rpartition(b"\r\n\r\n")[2].decode().strip()


def _served(balance: Balance) -> Counter[str]:
    """Return how many of 10,000 connections, each from another client, every server got."""
    sources = random.Random(2).sample(range(1 << 22), _CONNECTIONS)  # noqa: S311  # the same in every run
    with _worker(balance) as port:
        return Counter(_ask_all(port, (str(IPv4Address("127.64.0.0") + each) for each in sources)))


def _ideal(connections: int = _CONNECTIONS, **tolerance: float) -> object:
    """Return what equals the ideal number of connections of every server; `tolerance` as in approx."""
    total = sum(_WEIGHTS.values())
    counts = {name: connections * weight / total for name, weight in _WEIGHTS.items()}
    return pytest.approx(counts, **tolerance)
