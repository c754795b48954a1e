"""Shared addresses without BGP: a static route to virtual IPs, which VRRP spreads over the nodes."""

import os
from typing import Final

import pytest
from support.linger.node_changes import changes_of
from support.linger.shared_field import hops_field

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", root=True),
    pytest.mark.slow("whole appliances behind a router, and six virtual IPs of each family"),
]

_FULL: Final = os.environ.get("E2E_FULL") == "1"
_COUNTS: Final = (2, 3, 5) if _FULL else (3,)


@pytest.mark.promise("docs/shared-ips.md", "without BGP, nodes that leave and return end no connection")
@pytest.mark.parametrize("count", _COUNTS)
def test_nodes_that_leave_and_return_end_nothing(count: int):
    """Each node in turn gives its next hops away and gets them back; a dead one ends its own streams."""
    with hops_field(count) as field, changes_of(field) as changes:
        for name in field.machines:
            changes.leave_and_return(name)
        changes.restart("one")
        assert changes.streams.report().ended == {}
        changes.die("two")
