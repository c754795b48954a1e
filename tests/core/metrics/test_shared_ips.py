"""The metrics of shared IPs and sessions."""

import pytest
from support.values.observations import NOW, observations
from support.values.shared_ips import (
    announcing,
    bgp,
    neighbor,
    session,
    shared_ip,
    shared_status,
    with_shared,
)
from support.values.snapshots import snapshot

from appliance.core.metrics.shared_ips import shared_ip_metrics
from appliance.core.status.assessment import assess
from appliance.core.status.observations import Observations
from appliance.model.snapshot.shared_ip import Engine

pytestmark = pytest.mark.pure

PEERS = bgp(neighbor(), neighbor("tor-b", address="fe80::1%ens192", port=1179))
ANSWER = announcing(
    shared_status(state="drained"),
    by=(session(), session("tor-b", address="fe80::1%ens192", state="Active", bfd="", exported=0)),
)


def values(found: Observations) -> dict[str, dict[str, float]]:
    """Return values by name and labels."""
    return {each.name: dict(each.samples) for each in shared_ip_metrics(assess(found, NOW), found)}


def test_states_and_sessions():
    """One state of four, the other nodes, each session, and BFD where it is."""
    found = values(observations(snapshot=with_shared(by=PEERS), announce=ANSWER))
    assert found["appliance_shared_ip_state"] == {
        f'{{name="ingress-all",state="{state}"}}': int(state == "drained")
        for state in ("starting", "serving", "drained", "withdrawn")
    }
    assert found["appliance_shared_ip_other_nodes"] == {'{name="ingress-all"}': 2}
    assert found["appliance_bgp_session_up"] == {'{neighbor="tor-a"}': 1, '{neighbor="tor-b"}': 0}
    assert found["appliance_bgp_bfd_up"] == {'{neighbor="tor-a"}': 1}
    assert found["appliance_bgp_announced"] == {'{neighbor="tor-a"}': 1, '{neighbor="tor-b"}': 0}


def test_metallb_s_names_and_labels():
    """Its dashboards find address and port of BGP, and the address of BFD."""
    found = values(observations(snapshot=with_shared(by=PEERS), announce=ANSWER))
    assert found["metallb_bgp_session_up"] == {
        '{peer="10.0.0.1:179",vrf="default"}': 1,
        '{peer="fe80::1:1179",vrf="default"}': 0,
    }
    assert found["metallb_bgp_announced_prefixes_total"]['{peer="10.0.0.1:179",vrf="default"}'] == 1
    assert found["metallb_bfd_session_up"] == {'{peer="10.0.0.1",vrf="default"}': 1}


def test_without_an_answer_no_state_is_claimed():
    """Every state is 0: an alert for `serving` fires."""
    found = values(observations(snapshot=with_shared()))
    assert set(found["appliance_shared_ip_state"].values()) == {0}


def test_with_another_daemon_there_are_no_sessions():
    """They are its own exporter's."""
    by = bgp(neighbor(), engine=Engine.TABLE)
    found = values(observations(snapshot=with_shared(by=by), announce=announcing(shared_status(), by=())))
    assert found["appliance_bgp_session_up"] == {}


def test_without_shared_ips_there_are_none():
    """Not even with `bgp`."""
    assert values(observations()) == {}


def test_without_bgp_there_are_states_only():
    """`check` refuses that, but the snapshot may be of another version."""
    found = values(observations(snapshot=snapshot(shared_ips=(shared_ip(),))))
    assert list(found) == ["appliance_shared_ip_state", "appliance_shared_ip_other_nodes"]
