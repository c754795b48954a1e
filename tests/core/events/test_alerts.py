"""Events as Alertmanager's alerts, and as a line for people."""

from datetime import datetime

import pytest

from appliance.core.events.alerts import LASTING, MOMENT, alerts, summary
from appliance.model.operator_events import EventKind, OperatorEvent

pytestmark = pytest.mark.pure


def event(kind: EventKind, when: float = 1000.0, **more: str) -> OperatorEvent:
    """Return an event about a server."""
    return OperatorEvent(when=when, kind=kind, subject="masters/m0", **more)


def lasts(alert: dict[str, object]) -> float:
    """Return for how many seconds an alert is there."""
    begin, end = (datetime.fromisoformat(str(alert[key])) for key in ("startsAt", "endsAt"))
    return (end - begin).total_seconds()


def test_an_alert_begins_and_is_ended_by_its_labels():
    """The labels of both are the same, which is how Alertmanager knows the alert; the second one is over."""
    (down,) = alerts([event(EventKind.SERVER_DOWN, cause="L7STS", detail="500")], "lb-1")
    assert down["labels"] == {
        "alertname": "appliance-server-down",
        "severity": "warning",
        "instance": "lb-1",
        "subject": "masters/m0",
    }
    assert down["annotations"] == {"summary": "masters/m0: server-down, L7STS, 500", "description": "500"}
    assert lasts(down) == LASTING
    over = list(alerts([event(EventKind.SERVER_UP)], "lb-1"))
    assert over[0]["labels"] == down["labels"]
    assert [lasts(each) for each in over] == [0.0, 0.0]


def test_what_has_no_end_is_an_alert_for_an_hour():
    """Nothing ends the death of a worker."""
    (died,) = alerts([event(EventKind.WORKER_DIED)], "lb-1")
    assert lasts(died) == MOMENT


def test_a_split_brain_is_an_alert_for_an_hour():
    """Who wins it stays active: no event of its own ends it there. Who loses it goes to backup."""
    (split,) = alerts([event(EventKind.SPLIT_BRAIN)], "lb-1")
    assert lasts(split) == MOMENT
    assert split["labels"] in [each["labels"] for each in alerts([event(EventKind.VIP_BACKUP)], "lb-1")]


def test_a_summary_is_one_line():
    """It has the change, its cause and what is known besides."""
    assert summary(event(EventKind.SERVER_UP)) == "masters/m0: server-up"
    told = event(EventKind.SERVER_DOWN, before="up", after="down", cause="L4TOUT", detail="0 of 2 up")
    assert summary(told) == "masters/m0: server-down, up -> down, L4TOUT, 0 of 2 up"
    assert summary(event(EventKind.RELOAD_DONE, after="7")) == "masters/m0: reload-done, 7"
