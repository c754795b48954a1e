"""Checks that talk, in the program `health`: a verdict is what the server says of itself."""

import pytest
from support.health.health import Health, of, server
from support.peers.talking_server import TalkingServer
from support.processes.waiting import wait_until
from support.values import snapshots

from appliance.model.check_results import CheckResult
from appliance.model.server_states import HealthVerdict
from appliance.model.snapshot.pools import Check, CheckStep

pytestmark = pytest.mark.programs


def asks(*steps: CheckStep) -> Check:
    """Return a check of these steps that is made often."""
    return snapshots.check(
        steps=steps, interval=0.1, fast_interval=0.05, down_interval=0.1, timeout=0.3, rise=2, fall=2
    )


def test_the_master_is_up_and_the_replica_is_not(health: Health):
    """When they change roles the verdicts follow; no log tells a password that a server repeats."""
    check = asks(CheckStep(send="AUTH s3cret\r\n", expect="+OK"), CheckStep(send="ROLE\r\n", expect="master"))
    master, slave = ({b"AUTH": b"+OK\r\n", b"ROLE": role} for role in (b"master\r\n", b"slave\r\n"))
    with TalkingServer(b"", master) as first, TalkingServer(b"", slave) as second:
        health.accept(of([server("one", first.port, check), server("two", second.port, check)]))
        health.start()
        assert health.wait_for("one", HealthVerdict.UP).result is CheckResult.L7OK
        down = health.wait_for("two", HealthVerdict.DOWN, by=2)
        first.answers, second.answers = slave, master
        health.wait_for("one", HealthVerdict.DOWN)
        health.wait_for("two", HealthVerdict.UP)
        second.answers = {b"AUTH": b"-ERR invalid password: s3cret\r\n"}
        repeated = health.wait_for("two", HealthVerdict.DOWN)

    assert (down.result, down.unreachable) == (CheckResult.L7RSP, False)
    assert down.detail.startswith("step 2: no `master`, 7 bytes came: `slave`")
    assert "-ERR invalid password: ***" in repeated.detail
    assert "s3cret" not in health.log()


def test_a_reload_brings_other_steps(health: Health):
    """What is expected from now on decides, and a server that was up goes down by it."""
    with TalkingServer(b"220 ready\r\n", {}) as mail:
        health.accept(of([server("mx", mail.port, asks(CheckStep(expect_rstring="^220[ -]")))]))
        health.start()
        health.wait_for("mx", HealthVerdict.UP)
        health.apply(of([server("mx", mail.port, asks(CheckStep(expect="ESMTP")))], number=2))
        health.wait_for("mx", HealthVerdict.DOWN)
        health.apply(of([server("mx", mail.port, asks(CheckStep(expect="ready")))], number=3))
        health.wait_for("mx", HealthVerdict.UP)
        wait_until(lambda: "reset" in mail.heard, what="a check has gone")
