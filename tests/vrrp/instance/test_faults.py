"""Why an instance may not take part."""

import pytest

from appliance.vrrp.instance.faults import FaultReason, Faults

pytestmark = pytest.mark.pure


def test_without_a_fault_it_is_false():
    """Nothing keeps it from taking part; what was removed is no fault any more."""
    faults = Faults()
    assert not faults
    faults.add(FaultReason.SOCKET, "refused")
    assert faults
    assert FaultReason.SOCKET in faults
    faults.remove(FaultReason.SOCKET)
    faults.remove(FaultReason.SOCKET)
    assert not faults
    assert FaultReason.SOCKET not in faults


def test_messages_stay_in_their_order():
    """A fault whose message changes keeps its place; there is one of each reason."""
    faults = Faults()
    faults.add(FaultReason.INTERFACE, "eth0 is down")
    faults.add(FaultReason.SOURCE, "no address")
    faults.add(FaultReason.INTERFACE, "eth0 does not exist")
    assert faults.messages == ("eth0 does not exist", "no address")


def test_tracks_replace_one_another():
    """The faults of tracks are always those of the last call, behind the others."""
    faults = Faults()
    faults.set_tracks({"web": "track web: down", "disk": "track disk: full"})
    faults.add(FaultReason.BUG, "ValueError")
    faults.set_tracks({"disk": "track disk: full"})
    assert faults.messages == ("ValueError", "track disk: full")
    assert FaultReason.TRACK in faults
    faults.set_tracks({})
    assert FaultReason.TRACK not in faults
