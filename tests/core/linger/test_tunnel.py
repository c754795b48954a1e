"""The rules about the VXLAN; what the kernel makes of them is shown in tests/kernel/linger/test_racks.py."""

import pytest

from appliance.core.linger import ruleset
from appliance.core.linger.tunnel import Tunnel
from appliance.wire.nftables.nftables_commands import Family

pytestmark = pytest.mark.pure

TUNNELS = {
    Family.IPV4: Tunnel(port=29447, nodes=("10.2.0.1", "10.1.0.1"), mtu=1450),
    Family.IPV6: Tunnel(port=29447, nodes=("fd00:2::1",), mtu=1430),
}


def made(family: Family, tunnel: Tunnel | None) -> str:
    """Return the script that makes the table."""
    return ruleset.make(family, [], port=29446, longest=60.0, times={}, shared=True, tunnel=tunnel)


@pytest.mark.parametrize("family", list(Family))
def test_packets_of_others_are_dropped_before_any_other_rule(family: Family):
    """Both tables do so, which then have the same rules as without a VXLAN."""
    for script, plain, table in (
        (made(family, TUNNELS[family]), made(family, None), ruleset.TABLE),
        (
            ruleset.guard(family, [], longest=60.0, shared=True, tunnel=TUNNELS[family]),
            ruleset.guard(family, [], longest=60.0, shared=True),
            ruleset.GUARD,
        ),
    ):
        begin = f"add rule {family} {table} prerouting "
        lines = [each for each in script.splitlines() if each.startswith(begin)]
        listed = ", ".join(sorted(TUNNELS[family].nodes))
        assert lines[0] == f"{begin}udp dport 29447 {family} saddr != {{ {listed} }} drop"
        assert lines[1:] == [each for each in plain.splitlines() if each.startswith(begin)]


@pytest.mark.parametrize(("family", "size"), [(Family.IPV4, 1410), (Family.IPV6, 1370)])
def test_clients_are_asked_for_segments_that_fit(family: Family, size: int):
    """With the headers of IP and TCP these are the VXLAN's largest packets; untracked are its own."""
    script = made(family, TUNNELS[family])
    accepted = f"{family} saddr @shared tcp flags & (syn | ack) == (syn | ack)"
    assert f"accepted {accepted} tcp option maxseg size set {size}" in script
    assert script.count("udp dport 29447 notrack") == 2
    assert "maxseg" not in made(family, None)
