"""What `linger` answers to `status`."""

import pytest

from appliance.wire.lines.linger_status import KeptStatus, LingerStatus
from appliance.wire.lines.status_answer import StatusAnswerError, decode, encode

pytestmark = pytest.mark.pure


def test_connections_that_are_still_here():
    """Only those of addresses that this node has left count: the others are where they belong."""
    status = LingerStatus(
        addresses=(
            KeptStatus(address="10.0.0.200", active=True, connections=7),
            KeptStatus(address="10.0.0.201", left_at=1.5, connections=3),
        )
    )
    assert status.connections == 3
    assert decode(encode(status), LingerStatus) == status


@pytest.mark.parametrize(
    ("trouble", "followers", "why"),
    [
        ("", ("10.0.0.92",), ""),
        ("", (), "no other known node would forward packets of 10.0.0.200 here"),
        ("reports of 10.0.0.92 are damaged", ("10.0.0.92",), "reports of 10.0.0.92 are damaged"),
    ],
)
def test_moves_that_would_end_connections(trouble: str, followers: tuple[str, ...], why: str):
    """Only of virtual routers that are to move, and that are served here."""
    kept = KeptStatus(address="10.0.0.200", router="api", active=True, followers=followers)
    left = KeptStatus(address="10.0.0.201", router="apps", left_at=1.5)
    status = LingerStatus(trouble=trouble, addresses=(kept, left))
    assert status.objection(["api"]) == why
    assert status.objection(["apps", "other"]) == ""


def test_another_answer():
    """What is no status is an error of its own."""
    with pytest.raises(StatusAnswerError):
        decode({"addresses": 7}, LingerStatus)
