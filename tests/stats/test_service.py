"""What `stats` serves of a snapshot, over real sockets: at each address the same, for the same clients."""

from collections.abc import Callable, Iterator
from pathlib import Path

import gevent
import pytest
import structlog
from gevent import socket
from support.network.ports import free_ports
from support.values.snapshots import snapshot

from appliance.model.paths import Paths
from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.snapshot import Stats
from appliance.stats.service import StatsRefused, StatsService

pytestmark = pytest.mark.sockets

Serve = Callable[..., None]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Return a function that has the service obey a section `stats`."""
    paths = Paths(runtime=tmp_path, state=tmp_path, config=tmp_path / "a.yaml")
    service = StatsService(paths, structlog.get_logger())
    number = iter(range(1, 100))

    def obey(stats: Stats) -> None:
        service.commit(service.prepare(snapshot(number=next(number), stats=stats)))

    yield obey
    service.close()


def status(port: int, path: str, *, client: str = "127.0.0.1") -> int | None:
    """Return the status of an answer, None where the connection is closed without one."""
    try:
        with (
            gevent.Timeout(10),
            socket.create_connection(("127.0.0.1", port), source_address=(client, 0)) as asking,
        ):
            asking.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            answer = asking.recv(65536)
    except ConnectionError:
        return None
    return int(answer.split()[1]) if answer else None


def test_each_address_answers(serve: Serve):
    """Page, figures and monitor are at all of them; one that a reload takes away answers no more."""
    first, second = free_ports(2)
    main, other = (Bind(host="127.0.0.1", port=port) for port in (first, second))
    serve(Stats(bind=main, more_binds=(other,), paths=("/lb?stats",), respond="/healthz"))
    for port in (first, second):
        assert [status(port, path) for path in ("/lb?stats", "/haproxy?stats;csv", "/healthz", "/x")] == [
            200,
            200,
            200,
            404,
        ]
    serve(Stats(bind=main, respond="/alive"))
    assert [status(first, path) for path in ("/lb?stats", "/healthz", "/alive")] == [404, 404, 200]
    assert status(second, "/alive") is None


def test_who_is_denied_is_closed(serve: Serve):
    """At each address, and before a byte is read; a reload holds at once."""
    first, second = free_ports(2)
    main, other = (Bind(host="127.0.0.1", port=port) for port in (first, second))
    serve(Stats(bind=main, more_binds=(other,), respond="/healthz", deny=("127.0.0.2/32",)))
    for port in (first, second):
        assert status(port, "/healthz", client="127.0.0.2") is None
        assert status(port, "/healthz") == 200
    serve(Stats(bind=main, more_binds=(other,), respond="/healthz"))
    assert status(second, "/healthz", client="127.0.0.2") == 200


def test_an_address_that_is_taken_refuses_all(serve: Serve):
    """The section is obeyed whole or not at all, and says which address it is."""
    first, second = free_ports(2)
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", second))
        holder.listen()
        with pytest.raises(StatsRefused, match=str(second)):
            serve(
                Stats(
                    bind=Bind(host="127.0.0.1", port=first),
                    more_binds=(Bind(host="127.0.0.1", port=second),),
                )
            )
    assert status(first, "/") is None
