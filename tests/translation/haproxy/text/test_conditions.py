"""Conditions of `.if`: what can be known of them is judged, and the rest is named."""

import pytest

from appliance.translation.haproxy.text.conditions import ConditionError, Truth, truth
from appliance.translation.haproxy.text.variables import Variables

pytestmark = pytest.mark.pure

VARIABLES = Variables({"A": "1"}, source="haproxy.cfg")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("", Truth.FALSE),
        ("0", Truth.FALSE),
        ("-0", Truth.FALSE),
        ("17", Truth.TRUE),
        ("!0", Truth.TRUE),
        ("( 1 )", Truth.TRUE),
        ("1 && 0 || 1", Truth.TRUE),
        ("0||0", Truth.FALSE),
        ("1 || 0 && 0", Truth.TRUE),
        ("defined(A)", Truth.TRUE),
        ("defined(B)", Truth.FALSE),
        ("defined(.FILE)", Truth.TRUE),
        ("defined(.NONE)", Truth.FALSE),
        ("streq(a,a) && strneq(a,b)", Truth.TRUE),
        ("streq('a,b)',\"a,b)\")", Truth.TRUE),
        ("0 && feature(QUIC)", Truth.FALSE),
        ("feature(QUIC) && 0", Truth.FALSE),
        ("1 || version_atleast(2.4)", Truth.TRUE),
    ],
)
def test_what_can_be_known(condition: str, expected: Truth):
    """The value is that of HAProxy, and nothing is unknown."""
    assert truth(condition, VARIABLES) == (expected, None)


@pytest.mark.parametrize(
    ("condition", "unknown"),
    [
        ("feature(QUIC)", "feature(QUIC)"),
        ("!version_atleast(2.4)", "version_atleast(2.4)"),
        ("1 && feature(QUIC) && enabled(poll)", "feature(QUIC)"),
        ("0 || feature(QUIC)", "feature(QUIC)"),
        ("defined(HAPROXY_MWORKER)", "defined(HAPROXY_MWORKER)"),
    ],
)
def test_what_only_haproxy_knows(condition: str, unknown: str):
    """The first predicate that decides it is named."""
    assert truth(condition, VARIABLES) == (Truth.UNKNOWN, unknown)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("yes", "`yes` cannot be parsed"),
        ("1 &&", "the condition is incomplete"),
        ("(1", "the condition is incomplete"),
        ("(1 1", "`1` cannot be parsed"),
        ("1 1", "`1` cannot be parsed"),
        ("streq(a)", "`streq` with 1 arguments"),
        ("bogus(a)", "`bogus` with 1 arguments"),
        ("defined(a", "`)` is missing"),
        ("!" * 40 + "1", "nested deeper"),
        ("(" * 40 + "1", "nested deeper"),
    ],
)
def test_what_nobody_understands(condition: str, message: str):
    """The message says where it ends to make sense."""
    with pytest.raises(ConditionError, match=r".") as caught:
        truth(condition, VARIABLES)
    assert message in str(caught.value)
