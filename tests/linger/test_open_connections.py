"""Which connections keep an address on a node that another one has taken it from."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from appliance.linger.open_connections import OpenConnections
from appliance.model.paths import Paths
from appliance.model.program_names import FORWARD
from appliance.net.control.control_server import ControlServer
from appliance.wire.lines.control import good

pytestmark = pytest.mark.sockets

VIP: Final = "192.0.2.100"
OTHER: Final = "192.0.2.101"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Return a runtime directory of its own."""
    return Paths(runtime=tmp_path, state=tmp_path)


@pytest.fixture
def connections(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenConnections]:
    """Yield the lists of a kernel that forwards three connections of one address, and two of the other."""
    monkeypatch.setattr(OpenConnections, "_forwarded", lambda _: Counter({VIP: 3, OTHER: 2}))
    found = OpenConnections(paths)
    yield found
    found.close()


@pytest.mark.parametrize(
    ("sync", "counted"),
    [
        ({"state": "synced", "addresses": [VIP]}, 0),
        ({"state": "alone", "addresses": [VIP]}, 3),
        ({"state": "unsynced", "trouble": "conntrackd is not installed", "addresses": [VIP]}, 3),
        (None, 3),
    ],
)
def test_what_other_nodes_have_is_not_waited_for(
    connections: OpenConnections, paths: Paths, sync: dict[str, object] | None, counted: int
):
    """With `sync: true`, as long as another node learns them."""
    server = ControlServer(
        paths.control(FORWARD), {"status": lambda _: good(sync=sync)}, on_error=lambda *_: None
    )
    assert connections.count([VIP, OTHER], forwards=True, synced=[VIP]) == {VIP: counted, OTHER: 2}
    server.close()


def test_all_are_waited_for_if_forward_does_not_answer(connections: OpenConnections):
    """Nobody knows then whether the other node has them."""
    assert connections.count([VIP, OTHER], forwards=True, synced=[VIP]) == {VIP: 3, OTHER: 2}
