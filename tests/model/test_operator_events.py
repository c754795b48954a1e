"""The words for what happens to the appliance."""

import pytest

from appliance.model.operator_events import EventKind, OperatorEvent, Severity, untold

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("kind", "severity"),
    [
        (EventKind.POOL_EMPTY, Severity.CRITICAL),
        (EventKind.SPLIT_BRAIN, Severity.CRITICAL),
        (EventKind.SERVER_DOWN, Severity.WARNING),
        (EventKind.RELOAD_REFUSED, Severity.WARNING),
        (EventKind.SERVER_UP, Severity.INFO),
        (EventKind.SERVER_DRAIN, Severity.INFO),
    ],
)
def test_severity(kind: EventKind, severity: Severity):
    """What clients feel at once is critical, what may become that is a warning."""
    assert kind.severity is severity


def test_nobody_need_listen():
    """An event that nobody wants to hear is told all the same."""
    assert untold(OperatorEvent(when=0.0, kind=EventKind.LAST_GOOD, subject="configuration")) is None
