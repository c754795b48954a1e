"""The words for what happens to the appliance."""

import pytest

from appliance.model.operator_events import EventKind, EventSeverity, OperatorEvent, publish_nowhere

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("kind", "severity"),
    [
        (EventKind.POOL_EMPTY, EventSeverity.CRITICAL),
        (EventKind.SPLIT_BRAIN, EventSeverity.CRITICAL),
        (EventKind.SERVER_DOWN, EventSeverity.WARNING),
        (EventKind.RELOAD_REFUSED, EventSeverity.WARNING),
        (EventKind.SERVER_UP, EventSeverity.INFO),
        (EventKind.SERVER_DRAIN, EventSeverity.INFO),
    ],
)
def test_severity(kind: EventKind, severity: EventSeverity):
    """What clients feel at once is critical, what may become that is a warning."""
    assert kind.severity is severity


def test_nobody_need_listen():
    """An event that nobody wants to hear is told all the same."""
    assert publish_nowhere(OperatorEvent(when=0.0, kind=EventKind.LAST_GOOD, subject="configuration")) is None
