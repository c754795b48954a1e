"""What is told of virtual routers, and how often."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import structlog
from structlog.testing import capture_logs
from support.values.snapshots import virtual_router
from support.vrrp.simulated_vrrp import Machine

from appliance.core.vrrp.election import Entered, RouterState, UnexpectedEvent
from appliance.core.vrrp.election_messages import Cause
from appliance.vrrp.instance.counters import RouterCounters
from appliance.vrrp.instance_events import RouterReports
from appliance.wire.lines.tracker_lines import WriteLine

pytestmark = pytest.mark.sockets


def test_unexpected_event_is_told_once():
    """An event that cannot happen is logged as the bug that it is, once for each event and state."""
    instance = SimpleNamespace(name="api", counters=RouterCounters())
    with capture_logs() as lines:
        reports = RouterReports(structlog.get_logger(), run=lambda _: None, touch=lambda: None)
        for event in ("startup", "startup", "recovery"):
            reports.unexpected(instance, UnexpectedEvent(event=event, state="active"))
    assert lines == [
        {
            "event": "election-unexpected",
            "log_level": "error",
            "router": "api",
            "happened": happened,
            "state": "active",
        }
        for happened in ("startup", "recovery")
    ]


def test_a_transition_is_told_to_a_fifo():
    """Who reads it gets a line of each, without a command."""
    notify = replace(virtual_router().notify, fifo="/run/fifo")
    instance = Machine().instance(virtual_router(notify=notify), 0.0)
    ordered: list[object] = []
    reports = RouterReports(structlog.get_logger(), run=ordered.append, touch=lambda: None)
    entered = Entered(
        state=RouterState.ACTIVE, previous=RouterState.BACKUP, cause=Cause.ACTIVE_DOWN, peer=None
    )
    with capture_logs():
        reports.entered(instance, entered)
    assert ordered == [WriteLine(router="api", path="/run/fifo", line='INSTANCE "api" MASTER 100')]
