"""The status of `forward`: what is written can be read, and what is not it is refused."""

import pytest
from support.values import boards

from appliance.wire.lines import forward_status
from appliance.wire.lines.forward_status import ForwardedGroup, ForwardStatus, ForwardStatusError

pytestmark = pytest.mark.pure


def test_round_trip():
    """All of it comes back."""
    group = ForwardedGroup(program="proxy-api", frontends=(boards.frontend_counters(total=3),))
    status = ForwardStatus(program="forward", groups=(group,), servers=(boards.server_counters(),))

    assert forward_status.decode(forward_status.encode(status)) == status


def test_what_is_absent_has_a_default():
    """The answer of another version can be read."""
    assert forward_status.decode({}) == ForwardStatus()


def test_what_is_no_status_is_refused():
    """With the one error of this module."""
    with pytest.raises(ForwardStatusError):
        forward_status.decode({"servers": 7})
