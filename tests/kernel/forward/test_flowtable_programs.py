"""Connections in flowtables, while the program that had them put there is reloaded, dies, ends, or moves."""

import os
import signal
from collections.abc import Callable

import pytest
from support.forward.flowtables import offloaded, offloaded_session, software_or_skip
from support.forward.forward_field import ForwardField, wait_for_servers
from support.forward.forward_pair import VIPS, ForwardPair
from support.processes.waiting import wait_until

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", root=True),
    pytest.mark.parametrize("version", [4, 6]),
]

ALL = ("s1", "s2", "s3")


def test_a_reload_takes_them_out_and_puts_them_in(balanced: ForwardField, version: int):
    """From `software` to `none` and back: the connection goes on by the rules, and beside them again."""
    balanced.version = version
    software_or_skip(balanced)
    with balanced.appliance(_config(balanced, "software")) as appliance:
        wait_for_servers(appliance, *ALL)
        session = offloaded_session(balanced, balanced.address)
        assert appliance.reload(_config(balanced, "none"))["ok"]
        wait_until(lambda: "flowtable" not in balanced.nft(), what="there is no flowtable")
        assert session.asks() == session.server
        assert offloaded(balanced) == 0
        assert appliance.reload(_config(balanced, "software"))["ok"]
        _wait_for_flow(balanced, session.asks)
        session.close()


def test_a_crash_leaves_them_there(balanced: ForwardField, version: int):
    """While nobody runs, and with the successor: the connection goes on, and is in a flowtable."""
    balanced.version = version
    software_or_skip(balanced)
    with balanced.appliance(_config(balanced, "software")) as appliance:
        wait_for_servers(appliance, *ALL)
        session = offloaded_session(balanced, balanced.address)
        killed = appliance.program_pid("forward")
        assert killed is not None
        os.kill(killed, signal.SIGSTOP)  # it is dead to the world: no successor yet
        assert session.asks() == session.server
        assert offloaded(balanced) == 1
        os.kill(killed, signal.SIGKILL)
        appliance.wait_for_restart("forward", killed)
        wait_until(lambda: len(appliance.events("forward-rules")) >= 2, what="the rules are taken over")
        _wait_for_flow(balanced, session.asks)
        session.close()


def test_a_stop_drains_them(balanced: ForwardField, version: int):
    """Nobody new gets in, what is open goes on until it ends, and then nothing is left."""
    balanced.version = version
    software_or_skip(balanced)
    with balanced.appliance(_config(balanced, "software", drain="10m")) as appliance:
        wait_for_servers(appliance, *ALL)
        session = offloaded_session(balanced, balanced.address)
        appliance.terminate()
        wait_until(lambda: balanced.ask() == "!ConnectionRefusedError", what="nobody gets in")
        assert session.asks() == session.server
        session.close()
        assert appliance.wait(patience=60) == 0
    assert (balanced.nft(), balanced.conntrack()) == ("", [])


def test_a_stop_ends_them_with_the_drain_time(balanced: ForwardField, version: int):
    """What is open still is reset at its next packet, and nothing is left."""
    balanced.version = version
    software_or_skip(balanced)
    with balanced.appliance(_config(balanced, "software", drain="1s")) as appliance:
        wait_for_servers(appliance, *ALL)
        session = offloaded_session(balanced, balanced.address)
        appliance.terminate()
        assert appliance.wait(patience=60) == 0
        session.socket.sendall(b"?")
        assert session.ends() == "reset"
        session.close()
    assert (balanced.nft(), balanced.conntrack()) == ("", [])


def test_a_planned_move_refuses_nobody(forward_pair: ForwardPair, version: int):
    """New connections come into the flowtable of the node that has the virtual IP then."""
    pair, address = forward_pair, VIPS[0 if version == 4 else 1]
    software_or_skip(pair.first)
    with pair.appliances(flowtable="software", sections={"watchdog": "5m"}) as (one, two):
        for each in (one, two):
            wait_for_servers(each, *pair.names)
        pair.wait_for_holder(pair.first)
        session = offloaded_session(pair.first, address)
        with pair.first.clients(address) as clients:
            clients.wait_for_more(20)
            pair.move(one)
            pair.wait_for_holder(pair.second)
            clients.wait_for_more(50)
            assert "!refused" not in clients.stop().errors
        offloaded_session(pair.second, address).close()
        session.close()


def _config(balanced: ForwardField, flowtable: str, *, drain: str = "10s") -> dict[str, object]:
    """Return a configuration whose programs may be slow: kernels with flowtables are often emulated ones."""
    return {**balanced.config(flowtable=flowtable), "defaults": {"drain": drain}, "watchdog": "5m"}


def _wait_for_flow(balanced: ForwardField, asks: Callable[[], str]) -> None:
    """Wait until the one connection, which is asked all the time, is in a flowtable."""
    server = asks()

    def asked() -> bool:
        assert asks() == server
        return offloaded(balanced) == 1

    wait_until(asked, what="the connection is in a flowtable")
