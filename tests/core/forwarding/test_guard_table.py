"""The guard as text; what the kernel makes of it is shown by tests/kernel/forward/test_flushes.py."""

from dataclasses import replace

import pytest
from support.values.snapshots import frontend, pool

from appliance.core.forwarding.forwarded import ForwardedFrontend
from appliance.core.forwarding.guard_table import guard
from appliance.model.snapshot.frontends import Bind, Forward
from appliance.wire.nftables.nftables_commands import Family

pytestmark = pytest.mark.pure


def _forwarded(*binds: Bind) -> ForwardedFrontend:
    config = frontend("main", forward=Forward.KERNEL, binds=list(binds))
    return ForwardedFrontend(
        number=1,
        name="api/main",
        config=config,
        pool=pool(),
        servers=(),
        slots=(),
        waits=False,
        leaving=False,
    )


def test_it_belongs_to_us_and_knows_what_is_bound():
    """Addresses with their ports, and ports of every address; first all that was there goes."""
    given = _forwarded(Bind(host="192.0.2.200", port=443), Bind(host="::", port=80))
    lines = guard(Family.IPV4, [given]).splitlines()
    assert lines[0] == "add table ip lb_forward_guard { flags owner; }"
    assert lines[-4:] == [
        "flush set ip lb_forward_guard bound",
        "add element ip lb_forward_guard bound { 192.0.2.200 . 443 }",
        "flush set ip lb_forward_guard bound_ports",
        "add element ip lb_forward_guard bound_ports { 80 }",
    ]


def test_what_a_proxy_takes_is_not_its_own():
    """A frontend that leaves is a proxy's: its clients are not dropped, nor where somebody listens."""
    lines = guard(Family.IPV6, [replace(_forwarded(Bind(host="::", port=80)), leaving=True)]).splitlines()
    assert not [each for each in lines if each.startswith("add element")]
    rules = [each for each in lines if each.startswith("add rule")]
    assert "socket transparent 0 return" in rules[-3]
    assert [each.endswith("drop") for each in rules[-2:]] == [True, True]
