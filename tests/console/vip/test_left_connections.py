"""What `appliance vip status` has of connections whose address has moved."""

from typing import Final

import pytest
from rich.console import Console
from support.vrrp.vip_answers import answer, router

from appliance.console.vip.left_connections import LeftConnections
from appliance.console.vip.vip_tables import vip_tables
from appliance.wire.lines.linger_status import KeeperStatus, KeptStatus, LingerStatus, SharedAddress
from appliance.wire.lines.migrate_status import DepartureStatus, MigrateStatus
from appliance.wire.lines.status_answer import decode
from appliance.wire.lines.vrrp_status import VrrpStatus

pytestmark = pytest.mark.pure

WHY: Final = "it connects to its server from this node's own address"
LINGER: Final = LingerStatus(
    addresses=(
        KeptStatus(address="192.0.2.200", router="api", left_at=60.0, connections=3),
        KeptStatus(address="192.0.2.201", router="ingress", active=True, connections=7),
    ),
    others=(
        KeeperStatus(node="192.0.2.9", address="192.0.2.201", router="ingress", left_at=30.0, connections=2),
    ),
    shared=(SharedAddress(address="192.0.2.210"),),
)
MIGRATE: Final = MigrateStatus(
    departures=(
        DepartureStatus(address="192.0.2.200", node="192.0.2.2", moved=40, stay={WHY: 3}),
        DepartureStatus(address="192.0.2.210", node="192.0.2.3", moved=5),
    )
)


def shown(*routers: str, name: str | None = None) -> str:
    """Return the lines of the command, while `vrrp` has these routers."""
    status = decode(answer(*map(router, routers)), VrrpStatus)
    console = Console(width=200)
    with console.capture() as captured:
        console.print(vip_tables(status, LeftConnections(LINGER, MIGRATE, name=name), (), 120.0))
    return "\n".join(" ".join(line.split()) for line in captured.get().splitlines())


@pytest.mark.parametrize("routers", [(), ("api", "ingress")])
def test_connections_that_are_left_are_shown_with_and_without_their_router(routers: tuple[str, ...]):
    """After `leave` `vrrp` has no routers, and the operator is sent here to see what is left."""
    text = shown(*routers)
    for line in (
        "192.0.2.200 this node 3 1m ago",
        "192.0.2.201 192.0.2.9 2 1m 30s ago",
        f"192.0.2.200 192.0.2.2 40 3 3: {WHY}",
        "192.0.2.210 192.0.2.3 5 0",
    ):
        assert text.splitlines().count(line) == 1, text


def test_one_virtual_ip_has_its_own_only():
    """`appliance vip status NAME`."""
    text = shown(name="api")
    assert "192.0.2.200 this node 3" in text
    assert "192.0.2.201" not in text
    assert "192.0.2.210" not in text


def test_as_json():
    """With `--json` there are the same ones."""
    values = LeftConnections(LINGER, MIGRATE).values()
    assert values["connections"] == [
        {"address": "192.0.2.200", "node": "this node", "connections": 3, "left_at": 60.0},
        {"address": "192.0.2.201", "node": "192.0.2.9", "connections": 2, "left_at": 30.0},
    ]
    assert values["sessions"] == list(MIGRATE.departures)
    assert LeftConnections(None, None).values() == {"connections": [], "sessions": []}
