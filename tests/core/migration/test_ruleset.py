"""The rules that hold back packets of connections under way to another node."""

import pytest

from appliance.core.migration import ruleset
from appliance.wire.nftables.nftables_commands import Family

pytestmark = pytest.mark.pure

_ENDS = ("192.0.2.9", 40000, "192.0.2.100", 6443)


def test_the_table_goes_with_the_process_and_drops_both_directions():
    """The kernel removes an owned table with its process: nothing stays held back."""
    made = ruleset.make(Family.IPV4).splitlines()
    assert made[0] == "add table ip lb_migrate { flags owner; }"
    assert made[-2:] == [
        "add rule ip lb_migrate in ip saddr . tcp sport . ip daddr . tcp dport @held drop",
        "add rule ip lb_migrate out ip daddr . tcp dport . ip saddr . tcp sport @held drop",
    ]


def test_a_hold_ends_by_itself():
    """Each element has a time-out."""
    assert ruleset.hold(Family.IPV4, [_ENDS], seconds=10) == (
        "add element ip lb_migrate held { 192.0.2.9 . 40000 . 192.0.2.100 . 6443 timeout 10s }"
    )


def test_letting_go_of_what_has_expired_is_no_error():
    """It is added before it is deleted, in one transaction."""
    added, deleted = ruleset.let_go(Family.IPV6, [("fd00::9", 1, "fd00::100", 2)]).splitlines()
    assert added == "add element ip6 lb_migrate held { fd00::9 . 1 . fd00::100 . 2 }"
    assert deleted == added.replace("add", "delete", 1)
