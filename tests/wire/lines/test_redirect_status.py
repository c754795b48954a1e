"""The status of `redirect`, from program to command."""

import pytest

from appliance.wire.lines.redirect_status import RedirectedFrontend, RedirectStatus
from appliance.wire.lines.status_answer import StatusAnswerError, decode, encode

pytestmark = pytest.mark.pure


def test_what_is_said_is_understood():
    """Every field; what another version leaves out has a default."""
    told = RedirectedFrontend(
        name="api/k", sources=("10.0.0.200:6443",), targets=("10.0.0.200:9445",), state="on", since=1.0
    )
    status = RedirectStatus(program="redirect", pid=7, snapshot=3, guarded=False, redirects=(told,))
    assert decode(encode(status), RedirectStatus) == status
    assert decode({}, RedirectStatus) == RedirectStatus()
    assert status.redirect("api/k") is told
    assert status.redirect("api/x") is None


def test_another_answer_is_one_error():
    """As of a program of another name."""
    with pytest.raises(StatusAnswerError):
        decode({"redirects": 7}, RedirectStatus)
