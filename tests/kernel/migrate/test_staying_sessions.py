"""Sessions that cannot move, beside those that do: the operator reads how many stay, and why."""

import contextlib
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from support.linger.linger_field import PORT, VIP, VIP6
from support.migrate.migrate_field import fill, migrating_nodes
from support.network import echoer
from support.network.checked_streams import CheckedStreams
from support.network.namespaces import Node
from support.network.ports import accepts
from support.processes.waiting import wait_until

from appliance.model.operator_events import EventKind
from appliance.net.events.kept_events import events_since

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", "openssl", root=True),
    pytest.mark.slow("moves of whole appliances"),
]

_OWN: Final = 7002  # servers see the node's own address
_NARROW: Final = 7003  # a server that takes one connection at a time
_COUNT: Final = 20  # sessions of each family that move
_STAY: Final = 3
_WHY: Final = f"{_STAY}: it connects to its server from this node's own address (`source: virtual-ip`)"
_QUIET: Final = 1.0  # seconds in which a queued client hears nothing


@contextlib.contextmanager
def _servers(machine: Node) -> Iterator[None]:
    for port in (_OWN, _NARROW):
        machine.start([sys.executable, echoer.__file__, "server", str(port)])
    with machine.inside():
        wait_until(lambda: accepts(_OWN) and accepts(_NARROW), what="the servers accept")
    yield


def _connected(client: Node, stack: contextlib.ExitStack) -> socket.socket:
    with client.inside():
        return stack.enter_context(socket.create_connection((VIP, _NARROW), timeout=_QUIET))


@pytest.mark.promise("docs/taking-a-node-away.md", "what stays is named with its reason")
def test_what_stays_is_named_and_what_waits_goes_on_waiting(tmp_path: Path):
    """`leave --within` and the events have both numbers; a queued session stays in the queue over there."""
    more = {
        _OWN: {"source": "node", "source_ports": None},
        _NARROW: {"server": {"max_connections": 1}, "timeouts": {"queue": "2m"}},
    }
    with (
        migrating_nodes(2, tmp_path, more=more, serve=_servers) as (client, (one, two)),
        CheckedStreams(client, port=PORT, period=0.1) as streams,
        CheckedStreams(client, port=_OWN, period=0.1) as staying,
        contextlib.ExitStack() as stack,
    ):
        fill(streams, _COUNT)
        staying.connect(VIP, _STAY)
        first = _connected(client, stack)
        assert first.recv(100) == b"server\n"
        queued = _connected(client, stack)
        _assert_waits(queued)

        done = one.appliance.command("leave", "--within", "8s", check=False)

        assert done.returncode == 1
        assert f"connections are left: {VIP} {_STAY} ({_WHY})" in " ".join(done.stderr.split())
        assert one.migrated()["given"] == two.migrated()["taken"] == 2 * _COUNT + 2
        _assert_waits(queued)
        first.close()
        queued.settimeout(30.0)
        assert queued.recv(100) == b"server\n"
        for each in (streams, staying):
            each.go_on()
            assert each.report().ended == {}
        told = events_since(one.appliance.paths)
        moved = [each for each in told if each.kind is EventKind.SESSIONS_MOVED]
        left = [each for each in told if each.kind is EventKind.SESSIONS_LEFT]
        numbers = {
            vip: sum(int(each.detail.partition(" ")[0]) for each in moved if each.subject == vip)
            for vip in (VIP, VIP6)
        }
        assert numbers == {VIP: _COUNT + 2, VIP6: _COUNT}
        assert all(each.detail.endswith(" to " + two.node.address) for each in moved if each.subject == VIP)
        assert [(each.subject, each.detail) for each in left] == [(VIP, _WHY)]


def _assert_waits(queued: socket.socket) -> None:
    """Its server has no place for it."""
    queued.settimeout(_QUIET)
    with pytest.raises(TimeoutError):
        queued.recv(100)
