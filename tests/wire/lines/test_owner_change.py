"""Connections that have come to a node or left it, as `migrate` sends them to `linger`."""

import pytest

from appliance.wire.lines import owner_change
from appliance.wire.lines.control import ControlError
from appliance.wire.lines.owner_change import MOST, OwnerChange

pytestmark = pytest.mark.pure

_ENDS = ("192.0.2.9", 40000, "192.0.2.100", 6443)


def test_what_is_sent_is_received():
    """Both kinds, each with its connections."""
    change = OwnerChange(ours=(_ENDS,), others=(("fd00::9", 1, "fd00::100", 65535),))
    assert owner_change.decode(owner_change.values(change)) == change


@pytest.mark.parametrize(
    "ends",
    [
        ("192.0.2.9 }; flush ruleset", 1, "192.0.2.100", 1),
        ("192.0.2.9", 0, "192.0.2.100", 1),
        ("192.0.2.9", 1, "192.0.2.100", 65536),
        ("192.0.2.9", 1),
    ],
)
def test_what_is_no_connection_is_refused(ends: tuple[object, ...]):
    """It becomes a part of the kernel's rules."""
    with pytest.raises(ControlError, match="change-owner"):
        owner_change.decode({"ours": [list(ends)]})


def test_too_many_are_refused():
    """Whoever sends them would hold up the packets of all."""
    with pytest.raises(ControlError, match="change-owner"):
        owner_change.decode({"others": [list(_ENDS)] * (MOST + 1)})
