"""What became of take-overs."""

import pytest

from appliance.model.take_overs import FailedTakeOver, TakenOver, TakeOvers

pytestmark = pytest.mark.pure

_DONE = TakenOver(when=10.0, version="1", pid=5, by="2")
_FAILED = FailedTakeOver(when=20.0, version="3", pid=6, reason="it has ended")


def test_both_kinds_are_counted():
    """Each with its last one."""
    found = TakeOvers().with_done(_DONE).with_failed(_FAILED).with_failed(_FAILED)
    assert (found.done, found.failed, found.last, found.last_failed) == (1, 2, _DONE, _FAILED)


def test_a_failure_is_over_when_one_went_well():
    """Until then it is shown."""
    assert TakeOvers().failure is None
    assert TakeOvers().with_failed(_FAILED).failure == _FAILED
    assert TakeOvers().with_done(_DONE).with_failed(_FAILED).failure == _FAILED
    later = TakenOver(when=30.0, version="1", pid=5, by="3")
    assert TakeOvers().with_failed(_FAILED).with_done(later).failure is None
