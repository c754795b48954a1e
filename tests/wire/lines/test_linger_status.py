"""What `linger` answers to `status`."""

import pytest

from appliance.wire.lines import linger_status
from appliance.wire.lines.linger_status import KeptStatus, LingerStatus, LingerStatusError

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
    assert linger_status.decode(linger_status.encode(status)) == status


def test_another_answer():
    """What is no status is an error of its own."""
    with pytest.raises(LingerStatusError):
        linger_status.decode({"addresses": 7})
