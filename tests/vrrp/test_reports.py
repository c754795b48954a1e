"""What is told of virtual routers, and how often."""

from types import SimpleNamespace

import pytest
import structlog
from structlog.testing import capture_logs

from appliance.core.vrrp.election import UnexpectedEvent
from appliance.vrrp.instance.counters import RouterCounters
from appliance.vrrp.reports import RouterReports

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
