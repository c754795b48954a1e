"""What `linger` looks at while it runs, without a kernel to lead packets."""

from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn, cast

import gevent
import pytest
from structlog.testing import CapturingLogger
from structlog.typing import FilteringBoundLogger
from support.processes.waiting import wait_until
from support.values.snapshots import snapshot

from appliance.core.status.connection_room import ConnectionRoom
from appliance.linger.lingerer import Lingerer
from appliance.model.paths import Paths
from appliance.net.netlink import connection_room

pytestmark = pytest.mark.sockets


def test_a_table_of_connections_that_fills_is_an_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The kernel drops new connections when it is full: each look begins with it."""

    def end(_: Lingerer) -> NoReturn:
        raise gevent.GreenletExit  # what a look goes on with is the kernel's

    log = CapturingLogger()
    monkeypatch.setattr(connection_room, "connection_room", lambda _: ConnectionRoom(used=85, limit=100))
    monkeypatch.setattr(Lingerer, "_active", end)
    paths = Paths(runtime=tmp_path, state=tmp_path)
    bound = cast("FilteringBoundLogger", log)
    made = Lingerer(paths, bound, publish=lambda *_, **__: None, on_fault=print)
    with ExitStack() as stack:
        stack.callback(made.close, ends=False)
        made.snapshot = snapshot()
        wait_until(lambda: log.calls, what="it is logged", sleep=gevent.sleep)

    assert log.calls[0].args == ("conntrack-fills",)
    assert log.calls[0].kwargs == {"used": 85, "limit": 100}
