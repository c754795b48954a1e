"""`nft flush ruleset` on a node that forwards: neither open connections nor new ones notice."""

import os
import signal

import pytest
from support.forward.forward_field import VIPS, ForwardField, wait_for_servers
from support.processes.waiting import wait_until

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]

_SERVERS = ("s1", "s2", "s3")
_OPEN = 50
_FLUSHES = 20
_GUARD = "lb_forward_guard"


@pytest.mark.promise("docs/forward.md", "`nft flush ruleset` ends and refuses none")
@pytest.mark.parametrize("version", [4, pytest.param(6, marks=pytest.mark.slow("the same way as above"))])
def test_a_flush_ends_and_refuses_no_connection(balanced: ForwardField, version: int):
    """Again and again: open connections go on, new ones reach a server, and a stop leaves nothing."""
    balanced.version = version
    with balanced.appliance() as appliance:
        wait_for_servers(appliance, *_SERVERS)
        sessions = [balanced.session() for _ in range(_OPEN)]
        with balanced.clients(VIPS[0] if version == 4 else VIPS[1]) as clients:
            for _ in range(_FLUSHES):
                balanced.balancer.run(["nft", "flush", "ruleset"])
                assert [each.asks() for each in sessions] == [each.server for each in sessions]
                clients.wait_for_more(10)
            assert clients.stop().errors == {}
        assert appliance.events("forward-rules-gone")
        for each in sessions:
            each.close()
    assert balanced.nft() == ""


@pytest.mark.slow("whole appliances on a segment of their own")
def test_the_guard_goes_and_comes_with_the_program(balanced: ForwardField):
    """A kill takes it away and leaves the rules; the next process makes it anew, and a flush ends nothing."""
    with balanced.appliance() as appliance:
        wait_for_servers(appliance, *_SERVERS)
        with balanced.session() as session:
            killed = appliance.program_pid("forward")
            assert killed is not None
            os.kill(killed, signal.SIGKILL)
            wait_until(lambda: _GUARD not in balanced.nft(), what="the kernel has taken the guard away")
            assert "table ip lb_forward {" in balanced.nft()
            appliance.wait_for_restart("forward", killed)
            wait_until(lambda: _GUARD in balanced.nft(), what="the guard is there again")
            balanced.balancer.run(["nft", "flush", "ruleset"])
            assert session.asks() == session.server
