"""The metrics of keepalived_exporter."""

import pytest
from support.values.observations import observations
from support.values.snapshots import snapshot, virtual_router
from support.vrrp.vrrp_boards import vrrp_board

from appliance.core.metrics.keepalived import keepalived_metrics
from appliance.model.drop_reasons import DropReason
from appliance.wire.boards.vrrp_board import VrrpBoard
from appliance.wire.lines.vrrp_status import PriorityPartStatus, RouterStatus, VrrpStatus

pytestmark = pytest.mark.pure

VI = 'iname="VI_1",intf="eth0",vrid="51"'


def samples(
    board: VrrpBoard | None = None, *, answers: bool = True, **changes: object
) -> dict[str, dict[str, float]]:
    """Return the values by name and labels, of one router."""
    router = RouterStatus(
        name="VI_1", interface="eth0", router_id=51, addresses=("10.0.0.1/24", "10.0.0.2/24"), **changes
    )
    found = observations(
        snapshot=snapshot(virtual_routers=[virtual_router("VI_1")]),
        vrrp=VrrpStatus(routers=(router,)) if answers else None,
        vrrp_board=board,
    )
    return {each.name: dict(each.samples) for each in keepalived_metrics(found)}


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
    found = samples(vrrp_board(name="VI_1"))

    assert found["keepalived_advertisements_sent_total"] == {f"{{{VI}}}": 7}
    assert found["keepalived_become_master_total"] == {f"{{{VI}}}": 2}
    assert found["keepalived_release_master_total"] == {f"{{{VI}}}": 1}
    assert found["keepalived_priority_zero_sent_total"] == {f"{{{VI}}}": 0}


def test_dropped_packets_are_counted_where_the_exporter_does():
    """Several of our reasons are one of keepalived's."""
    drops = {DropReason.PASSWORD: 2, DropReason.HMAC_DIGEST: 3, DropReason.HOP_LIMIT: 4}
    found = samples(vrrp_board(name="VI_1", drops=drops))

    assert found["keepalived_authentication_failure_total"] == {f"{{{VI}}}": 5}
    assert found["keepalived_ip_ttl_errors_total"] == {f"{{{VI}}}": 4}
    assert found["keepalived_packet_length_errors_total"] == {f"{{{VI}}}": 0}


def test_a_program_that_does_not_answer():
    """It is not up; nothing is said of its routers."""
    found = samples(vrrp_board(name="VI_1"), answers=False)
    assert found["keepalived_up"] == {"": 0}
    assert not any(given for name, given in found.items() if name != "keepalived_up")


def test_without_virtual_ips_there_is_nothing():
    """An alert on keepalived_up must not fire where there is no vrrp."""
    assert list(keepalived_metrics(observations())) == []


def test_tracks_are_scripts():
    """1 for good, 0 for bad; a track without a verdict is absent."""
    parts = (
        PriorityPartStatus(track="web", up=True),
        PriorityPartStatus(track="web", up=False),
        PriorityPartStatus(track="api", up=True),
        PriorityPartStatus(track="new", up=None),
    )
    found = samples(parts=parts)["keepalived_script_status"]
    assert found == {'{name="web"}': 0, '{name="api"}': 1}


def test_the_delay_of_gratuitous_arp():
    """It is the configured one, in seconds."""
    [found] = samples()["keepalived_gratuitous_arp_delay_total"].items()
    assert found == (f"{{{VI}}}", virtual_router("VI_1").announce.delay)


def test_without_a_configuration_nothing_is_said():
    """Nor where it cannot be read."""
    assert list(keepalived_metrics(observations(snapshot="gone"))) == []
