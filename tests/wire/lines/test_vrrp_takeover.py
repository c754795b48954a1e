"""What one vrrp tells the next, there and back, and damaged."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.wire.lines.control import Answer, ControlError, decode_answer, encode_answer
from appliance.wire.lines.vrrp_takeover import KnownRouter, KnownTrack, decode, encode, is_leaving, leaving

pytestmark = pytest.mark.pure

ROUTERS = (
    KnownRouter(
        name="api",
        router_id=222,
        active=True,
        yielded=False,
        tracks=(KnownTrack(name="load", up=True, value=7, detail="7"),),
    ),
    KnownRouter(name="ingress", router_id=61, active=False, yielded=True, tracks=()),
)


def test_there_and_back():
    """What was told arrives, through the line of a control socket."""
    line = encode_answer(Answer(ok=True, values={"routers": encode(ROUTERS)}))
    assert decode(decode_answer(line).values) == ROUTERS


@pytest.mark.parametrize("routers", [None, 1, [{}], [{"name": "api"}], {"api": []}])
def test_what_is_no_list_of_routers_is_an_error(routers: object):
    """Anything else is the one error of control lines."""
    with pytest.raises(ControlError, match="routers"):
        decode({"routers": routers})


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(_JSON)
def test_garbage_never_escapes(routers: object):
    """Any value gives routers or the one error."""
    with suppress(ControlError):
        decode({"routers": routers})


def test_one_that_leaves_says_it():
    """What it answers then is no list of routers, and a list is no leaving."""
    assert is_leaving(leaving().values)
    assert not is_leaving({"routers": []})
