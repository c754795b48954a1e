"""The metrics of keepalived_exporter."""

import pytest

from appliance.core.metrics.keepalived import keepalived_metrics
from appliance.model.drop_reasons import DropReason
from appliance.wire.lines.vrrp_status import RouterStatus, VrrpStatus

pytestmark = pytest.mark.pure

VI = 'iname="VI_1",intf="eth0",vrid="51"'


def samples(**changes: object) -> dict[str, dict[str, float]]:
    """Return the values by name and labels, of one router."""
    router = RouterStatus(
        name="VI_1", interface="eth0", router_id=51, addresses=("10.0.0.1/24", "10.0.0.2/24"), **changes
    )
    found = keepalived_metrics(VrrpStatus(routers=(router,)), expected=True)
    return {each.name: dict(each.samples) for each in found}


@pytest.mark.parametrize(
    ("state", "number"),
    [("initialize", 0), ("backup", 1), ("active", 2), ("fault", 3), ("", 0)],
)
def test_the_state_of_each_address(state: str, number: int):
    """As the exporter has it: 0 INIT, 1 BACKUP, 2 MASTER, 3 FAULT."""
    assert samples(state=state)["keepalived_vrrp_state"] == {
        f'{{{VI},ip_address="10.0.0.1/24"}}': number,
        f'{{{VI},ip_address="10.0.0.2/24"}}': number,
    }


def test_the_counters():
    """Under the exporter's names."""
    found = samples(counters={"adverts_sent": 7, "became_active": 2, "left_active": 1})

    assert found["keepalived_advertisements_sent_total"] == {f"{{{VI}}}": 7}
    assert found["keepalived_become_master_total"] == {f"{{{VI}}}": 2}
    assert found["keepalived_release_master_total"] == {f"{{{VI}}}": 1}
    assert found["keepalived_priority_zero_sent_total"] == {f"{{{VI}}}": 0}


def test_dropped_packets_are_counted_where_the_exporter_does():
    """Several of our reasons are one of keepalived's."""
    drops = {DropReason.PASSWORD.value: 2, DropReason.HMAC_DIGEST.value: 3, DropReason.HOP_LIMIT.value: 4}
    found = samples(drops=drops)

    assert found["keepalived_authentication_failure_total"] == {f"{{{VI}}}": 5}
    assert found["keepalived_ip_ttl_errors_total"] == {f"{{{VI}}}": 4}
    assert found["keepalived_packet_length_errors_total"] == {f"{{{VI}}}": 0}


def test_a_program_that_does_not_answer():
    """It is not up; nothing is said of its routers."""
    found = {each.name: list(each.samples) for each in keepalived_metrics(None, expected=True)}
    assert found["keepalived_up"] == [("", 0)]
    assert not any(given for name, given in found.items() if name != "keepalived_up")


def test_without_virtual_ips_there_is_nothing():
    """An alert on keepalived_up must not fire where there is no vrrp."""
    assert list(keepalived_metrics(None, expected=False)) == []
