"""Who wants to be told what."""

import pytest

from appliance.model.operator_events import EventKind, Severity
from appliance.model.snapshot.notify import NotifyTarget

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("severity", "events", "wanted"),
    [
        (Severity.INFO, (), {EventKind.SERVER_UP, EventKind.SERVER_DOWN, EventKind.POOL_EMPTY}),
        (Severity.CRITICAL, (), {EventKind.POOL_EMPTY}),
        (Severity.INFO, (EventKind.SERVER_UP,), {EventKind.SERVER_UP}),
        (Severity.CRITICAL, (EventKind.SERVER_UP,), set()),
    ],
)
def test_events_are_chosen_by_severity_and_kind(
    severity: Severity, events: tuple[EventKind, ...], wanted: set[EventKind]
):
    """Both have to fit; without kinds all are meant."""
    target = NotifyTarget(name="desk", severity=severity, timeout=1.0, events=events)
    kinds = (EventKind.SERVER_UP, EventKind.SERVER_DOWN, EventKind.POOL_EMPTY)
    assert {kind for kind in kinds if target.wants(kind)} == wanted
