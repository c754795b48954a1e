"""The status of `forward`: what is written can be read, and what is not it is refused."""

import pytest
from support.values import boards

from appliance.wire.lines.forward_status import ForwardedGroup, ForwardStatus
from appliance.wire.lines.status_answer import StatusAnswerError, decode, encode

pytestmark = pytest.mark.pure


def test_round_trip():
    """All of it comes back."""
    group = ForwardedGroup(program="proxy-api", frontends=(boards.frontend_counters(total=3),))
    status = ForwardStatus(program="forward", groups=(group,), servers=(boards.server_counters(),))

    assert decode(encode(status), ForwardStatus) == status


def test_what_is_absent_has_a_default():
    """The answer of another version can be read."""
    assert decode({}, ForwardStatus) == ForwardStatus()


def test_what_is_no_status_is_refused():
    """With the one error of this module."""
    with pytest.raises(StatusAnswerError):
        decode({"servers": 7}, ForwardStatus)
