"""Shared addresses without BGP: a static route to virtual IPs, which VRRP spreads over the nodes."""

import pytest
from support.linger.linger_field import PORT
from support.linger.shared_field import HOPS, SHARED, SHARED6, HopsField, hops_field
from support.network.checked_streams import CheckedStreams
from support.processes.waiting import wait_until

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", root=True),
    pytest.mark.slow("whole appliances behind a router, and six virtual IPs of each family"),
]

_COUNT = 40


def _wait_for(field: HopsField, *names: str) -> None:
    """Wait until these nodes have all next hops, as many each."""
    share = sum(map(len, HOPS.values())) // len(names)
    shares = {name: share if name in names else 0 for name in field.machines}
    wait_until(
        lambda: {name: field.hops(name) for name in shares} == shares,
        what=f"the next hops are held so: {shares}",
        timeout=60.0,
    )


@pytest.mark.promise("docs/shared-ips.md", "without BGP, nodes that leave and return end no connection")
@pytest.mark.parametrize("count", [2, 3])
def test_nodes_that_leave_and_return_end_nothing(count: int):
    """Each node in turn gives its next hops away and gets them back, and no stream ends."""
    with hops_field(count) as field, CheckedStreams(field.client, port=PORT, period=0.1) as streams:
        for address in (SHARED, SHARED6):
            streams.connect(address, _COUNT)
        assert set(streams.report().by) == set(field.machines)
        for name in field.machines:
            field.nodes[name].appliance.command("leave")
            _wait_for(field, *(field.machines.keys() - {name}))
            streams.go_on()
            streams.connect(SHARED, 5)
            assert field.nodes[name].appliance.reload(field.config())["ok"]
            _wait_for(field, *field.machines)
            streams.go_on()
        assert streams.report().ended == {}
