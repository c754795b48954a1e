"""Ten thousand real connections through one worker: every algorithm gives each server its share."""

import random
import socket
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from ipaddress import IPv4Address

import pytest
from support.lone_worker import lone_worker
from support.nginx import nginx
from support.ports import free_port
from support.snapshots import bind, frontend, group, pool, server, snapshot

from appliance.model.snapshot import Balance

pytestmark = [pytest.mark.programs, pytest.mark.needs("nginx")]

_CONNECTIONS = 10_000
_AT_ONCE = 50
_HELD = 1000
_WEIGHTS = {"127.0.0.1": 1, "127.0.0.2": 2, "127.0.0.3": 3, "127.0.0.4": 4}
_REQUEST = b"GET /address HTTP/1.1\r\nHost: test\r\n\r\n"


@pytest.mark.parametrize("balance", [Balance.ROUNDROBIN, Balance.SOURCE, Balance.RANDOM, Balance.HASH])
def test_shares_follow_the_weights(balance: Balance):
    """Of 10,000 connections from as many clients each server gets its ideal share, within 2 % of all."""
    with _worker(balance) as port:
        sources = random.Random(2).sample(range(1 << 22), _CONNECTIONS)  # noqa: S311  # the same in every run
        counted = Counter(_ask_all(port, (str(IPv4Address("127.64.0.0") + each) for each in sources)))
    _assert_ideal(counted)


def test_leastconn_shares_held_connections_by_weight():
    """While connections are held, new ones go where the fewest are for a server's weight."""
    order = random.Random(3)  # noqa: S311  # the same in every run
    counted: Counter[str] = Counter()
    with _worker(Balance.LEASTCONN) as port, ExitStack() as stack:
        held: deque[socket.socket] = deque()
        for _ in range(_CONNECTIONS):
            connection = stack.enter_context(closing(_connect(port, "127.0.0.1")))
            connection.sendall(_REQUEST)
            counted[_answer(connection)] += 1
            held.append(connection)
            if len(held) > _HELD:
                held.rotate(order.randrange(_HELD))
                held.popleft().close()
    _assert_ideal(counted)


def test_source_sends_a_client_to_the_same_server_in_every_worker():
    """Two workers that know nothing of each other agree on every client."""
    clients = [f"127.64.{number // 250}.{number % 250 + 1}" for number in range(500)]
    with _worker(Balance.SOURCE) as one, _worker(Balance.SOURCE) as other:
        assert list(_ask_all(one, clients)) == list(_ask_all(other, clients))


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


def _connect(port: int, source: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30.0, source_address=(source, 0))


def _answer(connection: socket.socket) -> str:
    received = b""
    while b"\r\n\r\n" not in received or not received.endswith(b"\n"):
        chunk = connection.recv(4096)
        assert chunk, f"ended after {received!r}"
        received += chunk
    return received.rpartition(b"\r\n\r\n")[2].decode().strip()


def _assert_ideal(counted: Counter[str]) -> None:
    total = sum(_WEIGHTS.values())
    shares = {name: counted[name] / counted.total() for name in _WEIGHTS}
    ideal = {name: weight / total for name, weight in _WEIGHTS.items()}
    assert counted.total() == _CONNECTIONS
    assert shares == pytest.approx(ideal, abs=0.02)
