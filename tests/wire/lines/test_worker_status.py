"""A worker's status travels as the values of an answer."""

import pytest

from appliance.wire.lines import control
from appliance.wire.lines.status_answer import StatusAnswerError, decode, encode
from appliance.wire.lines.worker_status import (
    WorkerListener,
    WorkerStatus,
)

pytestmark = pytest.mark.pure

STATUS = WorkerStatus(
    program="proxy-api",
    generation=3,
    index=0,
    pid=77,
    workers=2,
    phase="accepting",
    snapshot=7,
    version="1.0",
    sessions=5,
    started_at=1.5,
    listeners=(WorkerListener(frontend="kube-api", host="::", port=9445),),
)


def test_status_comes_back() -> None:
    """What a worker answers is what its master reads, over a control line."""
    line = control.encode_answer(control.good(**encode(STATUS)))
    assert decode(control.decode_answer(line).values, WorkerStatus) == STATUS


def test_a_worker_of_another_version_is_understood() -> None:
    """Fields that the master does not need may be missing, and there may be others."""
    values = {"pid": 77, "phase": "draining", "workers": 1, "snapshot": 7, "colour": "red"}
    assert decode(values, WorkerStatus) == WorkerStatus(pid=77, phase="draining", workers=1, snapshot=7)


@pytest.mark.parametrize(
    "values", [{}, {"pid": "none"}, {"pid": 1, "phase": "asleep", "workers": 1, "snapshot": 1}]
)
def test_other_values_are_refused(values: dict[str, object]) -> None:
    """Anything else is one error."""
    with pytest.raises(StatusAnswerError):
        decode(values, WorkerStatus)
