"""`balance`, and what of it is ours."""

import pytest
from support.translation.haproxy_files import backend

from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("line", "expected", "outcome"),
    [
        ("balance roundrobin", "roundrobin", Outcome.KEPT),
        ("balance static-rr", "roundrobin", Outcome.CHANGED),
        ("balance leastconn", "leastconn", Outcome.KEPT),
        ("balance source", "source", Outcome.CHANGED),
        ("balance random", "random", Outcome.KEPT),
        ("balance random(2)", "random", Outcome.KEPT),
        ("balance random(3)", "random", Outcome.CHANGED),
        ("balance hash src", "source", Outcome.CHANGED),
        ("balance first", "roundrobin", Outcome.REFUSED),
        ("balance hash path", "roundrobin", Outcome.REFUSED),
        ("balance hash", "roundrobin", Outcome.REFUSED),
        ("balance uri depth 3", "roundrobin", Outcome.REFUSED),
        ("balance hdr(host)", "roundrobin", Outcome.REFUSED),
        ("balance leastcon", "roundrobin", Outcome.REFUSED),
        ("balance qqqqqqqqq", "roundrobin", Outcome.REFUSED),
        ("balance", "roundrobin", Outcome.KEPT),
        ("balance leastconn\n  balance", "roundrobin", Outcome.KEPT),
    ],
)
def test_algorithms(line: str, expected: str, outcome: Outcome):
    """Each is ours, nearly ours, or refused with what to write."""
    found = backend(line)
    assert (found.pool().balance, found.lines("balance")[-1].outcome) == (expected, outcome)


def test_the_nearest_algorithm():
    """A slip of the pen is named."""
    assert backend("balance leastcon").refused == [
        "9:11: `leastcon` is no algorithm: did you mean `leastconn`?"
    ]
    refused = backend("balance qqqqqqqqq").refused[0]
    assert "write one of roundrobin" in refused
    assert "first" not in refused, "that is refused, too"
    assert "did you mean" not in backend("balance firs").refused[0]
