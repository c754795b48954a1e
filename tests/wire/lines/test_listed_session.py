"""The listing of connections: what a worker answers is what the console reads."""

import pytest
from msgspec.structs import replace

from appliance.wire.lines import listed_session
from appliance.wire.lines.control import ControlError, decode_answer, encode_answer, good
from appliance.wire.lines.listed_session import ListedSession

pytestmark = pytest.mark.pure

ONE = ListedSession(
    id="proxy-api-1-0-1",
    frontend="kube-api",
    client="10.0.0.7:40000",
    server=None,
    age=1.5,
    idle=0.0,
    bytes_in=3,
    bytes_out=0,
    phase="queued",
)


def test_what_is_answered_is_read():
    """A listing survives the way over the control socket, with the keys that scripts know."""
    line = encode_answer(listed_session.encode([ONE]))
    assert line == (
        b'{"ok":true,"sessions":[{"id":"proxy-api-1-0-1","frontend":"kube-api","client":"10.0.0.7:40000",'
        b'"server":null,"age":1.5,"idle":0.0,"bytes_in":3,"bytes_out":0,"phase":"queued"}]}\n'
    )
    assert listed_session.decode(decode_answer(line)) == [ONE]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_connections_that_are_encoded_one_by_one_make_the_same_line(count: int):
    """However many there are."""
    one_by_one = listed_session.of_encoded([listed_session.encoded(ONE)] * count)
    assert encode_answer(one_by_one) == encode_answer(listed_session.encode([ONE] * count))


def test_what_the_kernel_does_not_tell_is_null():
    """A forwarded connection may have no age and no bytes; what remains of its time is there."""
    one = replace(ONE, age=None, idle=None, bytes_in=None, bytes_out=None, phase="forwarded", remaining=9.0)
    line = encode_answer(listed_session.encode([one], left_out=3))
    assert b'"age":null,"idle":null,"bytes_in":null,"bytes_out":null' in line
    assert listed_session.decode(decode_answer(line)) == [one]
    assert listed_session.left_out(decode_answer(line)) == 3


def test_an_answer_that_holds_all_leaves_nothing_out():
    """As one whose count is none."""
    assert [listed_session.left_out(each) for each in (good(), good(left_out="x"))] == [0, 0]


def test_an_answer_without_a_listing_is_an_empty_one():
    """A refusal carries no connections."""
    assert listed_session.decode(good()) == []


def test_other_fields_are_an_error():
    """What another version lists is not taken for ours."""
    with pytest.raises(ControlError, match="sessions"):
        listed_session.decode(good(sessions=[{"id": 7}]))
