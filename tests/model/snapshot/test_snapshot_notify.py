"""Who wants to be told what."""

import pytest

from appliance.model.operator_events import EventKind, EventSeverity
from appliance.model.snapshot.snapshot import NotifyTarget

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("severity", "events", "wanted"),
    [
        (EventSeverity.INFO, (), {EventKind.SERVER_UP, EventKind.SERVER_DOWN, EventKind.POOL_EMPTY}),
        (EventSeverity.CRITICAL, (), {EventKind.POOL_EMPTY}),
        (EventSeverity.INFO, (EventKind.SERVER_UP,), {EventKind.SERVER_UP}),
        (EventSeverity.CRITICAL, (EventKind.SERVER_UP,), set()),
    ],
)
def test_events_are_chosen_by_severity_and_kind(
    severity: EventSeverity, events: tuple[EventKind, ...], wanted: set[EventKind]
):
    """Both have to fit; without kinds all are meant."""
    target = NotifyTarget(name="desk", severity=severity, timeout=1.0, events=events)
    kinds = (EventKind.SERVER_UP, EventKind.SERVER_DOWN, EventKind.POOL_EMPTY)
    assert {kind for kind in kinds if target.wants(kind)} == wanted
