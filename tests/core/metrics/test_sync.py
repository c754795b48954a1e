"""The metrics of `sync`."""

import pytest
from support.values.observations import observations

from appliance.core.metrics.sync import sync_metrics
from appliance.core.status.observations import Observations
from appliance.wire.lines.forward_status import ForwardStatus, SyncStatus

pytestmark = pytest.mark.pure


def values(found: Observations) -> dict[str, dict[str, float]]:
    """Return values by name and labels."""
    return {each.name: dict(each.samples) for each in sync_metrics(found)}


def test_what_is_exchanged():
    """The state, what came, and what did not."""
    sync = SyncStatus(state="alone", received=5, failed=1, errors=2, bytes_sent=3, bytes_received=4)
    found = values(observations(forward=ForwardStatus(sync=sync)))
    assert found["appliance_sync_state"]['{state="alone"}'] == 1
    assert sum(found["appliance_sync_state"].values()) == 1
    assert found["appliance_sync_received_total"] == {"": 5}
    assert found["appliance_sync_bytes_total"] == {'{direction="sent"}': 3, '{direction="received"}': 4}
    assert found["appliance_sync_errors_total"] == {'{kind="lost"}': 2, '{kind="refused"}': 1}


@pytest.mark.parametrize("found", [observations(), observations(forward=ForwardStatus())])
def test_without_the_key_there_are_none(found: Observations):
    """Neither while nothing is forwarded."""
    assert values(found) == {}
