"""The status of vrrp travels as the values of an answer."""

import pytest
from support.vrrp.vip_answers import answer, heard, router

from appliance.wire.lines import control
from appliance.wire.lines.status_answer import StatusAnswerError, decode, encode
from appliance.wire.lines.vrrp_status import VrrpStatus

pytestmark = pytest.mark.pure


def test_a_status_comes_back():
    """What vrrp answers is what the console reads, over a control line."""
    status = decode(answer(router(heard=[heard("192.0.2.9")]), pending=None, leaving=["old"]), VrrpStatus)
    line = control.encode_answer(control.good(**encode(status)))
    assert decode(control.decode_answer(line).values, VrrpStatus) == status


def test_the_answer_has_the_fields_in_their_order():
    """Operators read the JSON, whose order stays as it is."""
    assert list(encode(VrrpStatus())) == [
        "program",
        "pid",
        "started_at",
        "snapshot",
        "pending",
        "not_kept",
        "socket_failures",
        "missing",
        "realtime",
        "late_wakeups",
        "latest_wakeup_s",
        "routers",
        "leaving",
        "takes_part",
    ]
    (encoded,) = encode(decode(answer(router()), VrrpStatus))["routers"]
    assert list(encoded) == list(router())


def test_an_empty_answer_is_understood():
    """Whatever is absent has a default, so that another version can be read; a router has at least a name."""
    assert decode({"routers": [{"name": "api"}], "colour": "red"}, VrrpStatus).routers[0].transitions == ()


@pytest.mark.parametrize("values", [{"routers": [{}]}, {"pid": "none"}, {"missing": 3}])
def test_other_values_are_refused(values: dict[str, object]):
    """Anything else is one error."""
    with pytest.raises(StatusAnswerError):
        decode(values, VrrpStatus)


def test_who_is_active_instead():
    """A backup knows the active router that it heard last; an active one knows of none but itself."""
    others = [heard("192.0.2.8", last_heard=5.0), heard("192.0.2.9", last_heard=7.0)]
    answered = answer(router(heard=others), router("b", state="backup", heard=others), router("c", heard=[]))
    found = decode(answered, VrrpStatus)
    assert [each.active_peer for each in found.routers] == [None, "192.0.2.9", None]
    assert found.router("b") is found.routers[1]
    assert found.router("d") is None
