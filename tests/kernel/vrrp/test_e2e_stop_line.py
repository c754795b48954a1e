"""The line `stop` beside a keepalived: all virtual IPs are left to it, until the next line `reload`."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.processes.processes import kill
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.vrrp.keepalived import Instance, Keepalived
from support.vrrp.vrrp_field import VIP, Field

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "keepalived", "tcpdump", root=True),
    pytest.mark.slow("real timers of several routers"),
]


def _config(*, priority: int = 150, **virtual_ips: object) -> dict[str, object]:
    api = {
        "addresses": [f"{VIP}/24"],
        "interface": "eth0",
        "router_id": 42,
        "version": 3,
        "advert": "100ms",
        "priority": priority,
    }
    return {"virtual_ips": {"api": api, **virtual_ips}}


class Dynkeepalived:
    """The connection that OpenShift's dynkeepalived holds: it writes lines, and never reads an answer."""

    def __init__(self, appliance: Appliance) -> None:
        self._connection = appliance.reload_connection()

    def say(self, line: str) -> None:
        """Write one line."""
        self._connection.sendall(f"{line}\n".encode())

    def close(self) -> None:
        """Let go."""
        self._connection.close()


@pytest.fixture
def beside_keepalived(ground: Field) -> Iterator[tuple[Appliance, Dynkeepalived]]:
    """An appliance that holds the address, and a keepalived that would."""
    with ExitStack() as stack:
        with ground.one.inside():
            appliance = stack.enter_context(Appliance(_config()))
        ground.wait_for_holder(ground.one)
        stack.enter_context(Keepalived(ground.two, Instance(priority=100))).wait_for("BACKUP")
        lines = Dynkeepalived(appliance)
        stack.callback(lines.close)
        yield appliance, lines


def test_a_stop_lasts_until_the_next_reload(
    ground: Field, beside_keepalived: tuple[Appliance, Dynkeepalived]
):
    """The keepalived hears a priority of 0 and has the address; `reload`, with the same file, has it back."""
    appliance, lines = beside_keepalived
    lines.say("stop")
    ground.wait_for_holder(ground.two)
    assert ground.capture.adverts(source=ground.one.address, priority=0)
    said = appliance.command("status", check=False)
    assert said.returncode == 1
    assert "left to others since the line `stop`" in said.stdout
    lines.say("stop")  # once more, as a dynkeepalived that is started again does: it is no mistake
    lines.say("reload")
    ground.wait_for_holder(ground.one)
    wait_until(lambda: appliance.status()["ok"], what="nothing is wrong")


def test_a_stop_outlives_our_programs_and_our_container(
    ground: Field, beside_keepalived: tuple[Appliance, Dynkeepalived]
):
    """Programs are killed, the file changes by itself, `run` is started again: we stay out."""
    appliance, lines = beside_keepalived
    lines.say("stop")
    ground.wait_for_holder(ground.two)
    for program in ("vrrp", "reload"):
        appliance.wait_for_restart(program, appliance.kill(program))
    appliance.write(_config(priority=160))
    appliance.wait_for_event("reload-done", lambda event: event["configuration"] == 2, timeout=60.0)
    ground.wait_for_adverts(10, source=ground.two.address)
    assert ground.holders() == [ground.two]
    assert appliance.ask("vrrp", "status")["takes_part"] is False
    appliance.stop(patience=30.0)
    with ground.one.inside():
        appliance.start()
    assert appliance.ask("vrrp", "status")["takes_part"] is False
    assert ground.holders() == [ground.two]
    appliance.command("reload")
    ground.wait_for_holder(ground.one)


def test_a_refused_reload_ends_a_stop_too(ground: Field, beside_keepalived: tuple[Appliance, Dynkeepalived]):
    """Whoever says `reload` wants the addresses served: by the configuration that was accepted before."""
    appliance, lines = beside_keepalived
    lines.say("stop")
    ground.wait_for_holder(ground.two)
    appliance.paths.config.write_text("virtual_ips: 1\n")
    lines.say("reload")
    ground.wait_for_holder(ground.one)


def test_a_program_that_does_not_answer_is_told_again(
    ground: Field, beside_keepalived: tuple[Appliance, Dynkeepalived]
):
    """Vrrp is killed in the moment of the `stop`, and comes back stopped."""
    appliance, lines = beside_keepalived
    pid = appliance.program_pid("vrrp")
    assert pid is not None
    kill(pid)
    lines.say("stop")
    appliance.wait_for_restart("vrrp", pid)
    ground.wait_for_holder(ground.two)
    ground.wait_for_adverts(10, source=ground.two.address)
    assert ground.holders() == [ground.two]


def test_without_virtual_ips_there_is_nothing_to_stop(ground: Field):
    """A stop on a node without virtual IPs is refused, and changes nothing."""
    with ground.one.inside(), Appliance({"virtual_ips": {}, **_pool()}) as appliance:
        with appliance.reload_connection() as connection:
            connection.sendall(b"stop\n")
            assert b"no virtual IPs" in _line(connection)
        wait_until(lambda: appliance.status()["ok"], what="all is well")


def _pool() -> dict[str, object]:
    frontend = {"bind": ["127.0.0.1:9445"], "pool": "masters"}
    servers = {"m0": {"address": "127.0.0.1:9"}}
    return {
        "api": {"workers": 1, "frontends": {"kube-api": frontend}},
        "pools": {"masters": {"check": False, "servers": servers}},
    }


def _line(connection: socket.socket) -> bytes:
    received = b""
    while not received.endswith(b"\n"):
        received += connection.recv(65536)
    return received
