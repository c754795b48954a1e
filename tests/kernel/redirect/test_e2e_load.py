"""Restarts and kills under load: nobody who connects to the virtual IP is refused."""

import contextlib
import os
from collections.abc import Callable
from typing import Final

import pytest
from support.network.greeted_clients import Answers, GreetedClients
from support.network.namespaces import Node
from support.processes.processes import kill
from support.processes.waiting import wait_until
from support.redirect.redirect_field import (
    API_PORT,
    API_SERVER,
    SERVER,
    VIPS,
    RedirectField,
    wait_for_state,
)
from support.supervisor.appliance import Appliance

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]

_FOUR, _SIX = VIPS[0], VIPS[2]
_ROUNDS = 10 if os.environ.get("E2E_FULL") else 1


class _Load:
    """Clients of both families elsewhere, 300 connections a second together, and on the node itself."""

    def __init__(self, field: RedirectField) -> None:
        def clients(node: Node, address: str, rate: int) -> GreetedClients:
            return self._stack.enter_context(GreetedClients(node, address, API_PORT, rate=rate))

        self._stack = contextlib.ExitStack()
        self.outside = (clients(field.client, _FOUR, 150), clients(field.client, _SIX, 150))
        self.here = clients(field.master, _FOUR, 50)

    def __enter__(self) -> "_Load":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def wait_for(self, name: str) -> None:
        """Wait until all of them are answered by this name."""
        for each in (*self.outside, self.here):
            each.wait_for(name)

    def stop(self) -> tuple[Answers, Answers]:
        """End; return what those elsewhere were answered, and those here."""
        words = tuple(word for each in self.outside for word in each.stop().words)
        return Answers(words=words), self.here.stop()


@pytest.mark.slow("whole appliances on a segment of their own")
def test_a_restart_refuses_nobody(field: RedirectField):
    """Stopped in order and started again: the API server takes the connections meanwhile."""
    with field.appliance() as appliance, _Load(field) as load:
        wait_for_state(appliance, "on")
        for _ in range(_ROUNDS):
            load.wait_for(SERVER)
            appliance.stop(patience=30)
            load.wait_for(API_SERVER)
            with field.master.inside():
                appliance.start()
            wait_for_state(appliance, "on")
        load.wait_for(SERVER)
        outside, here = load.stop()
        assert outside.errors == here.errors == {}


_Harm = Callable[[RedirectField, Appliance], None]


def _killed(program: str) -> _Harm:
    def harm(_: RedirectField, appliance: Appliance) -> None:
        appliance.wait_for_restart(program, appliance.kill(program))

    return harm


def _restart_proxy(_: RedirectField, appliance: Appliance) -> None:
    appliance.supervisorctl("restart", "proxy-api")


def _kill_supervisord(field: RedirectField, appliance: Appliance) -> None:
    before = appliance.program_pid("redirect")
    with field.master.inside():
        appliance.crash()
    appliance.wait_for_restart("redirect", before or 0)
    wait_until(lambda: appliance.program_pid("proxy-api"), what="the next master answers")


_HARMS: Final = (
    *map(_killed, ("redirect", "health", "proxy-api", "reload")),
    _restart_proxy,
    _kill_supervisord,
)


@pytest.mark.slow("kills every program under load")
@pytest.mark.promise("docs/redirect.md", "no end of ours refuses anybody")
def test_no_program_s_death_refuses_anybody(field: RedirectField):
    """Each killed, supervisord too, and the proxy restarted; an address leads to one of the two, always."""
    with field.appliance() as appliance, _Load(field) as load:
        wait_for_state(appliance, "on")
        for harm in _HARMS * _ROUNDS:
            load.wait_for(SERVER)
            harm(field, appliance)
            wait_for_state(appliance, "on")
        load.wait_for(SERVER)
        outside, here = load.stop()
        assert outside.errors == here.errors == {}


def _kill_all(appliance: Appliance) -> None:
    """Kill everything, as the end of a container does."""
    kill(appliance.pid)
    for pid in appliance.processes():
        kill(pid)
    appliance.remove_sockets()


def _kill_proxy_with_workers(appliance: Appliance) -> None:
    pids = [each.pid for each in appliance.workers()]
    for pid in (appliance.program_pid("proxy-api"), *pids):
        assert pid
        kill(pid)


@pytest.mark.slow("whole appliances on a segment of their own")
def test_a_kill_of_everything_refuses_nobody_elsewhere(field: RedirectField):
    """What a worker had accepted is lost with it; nobody is refused, and the next start takes over."""
    with field.appliance() as appliance, _Load(field) as load:
        wait_for_state(appliance, "on")
        for _ in range(_ROUNDS):
            load.wait_for(SERVER)
            _kill_all(appliance)
            load.wait_for(API_SERVER)
            left = "table ip lb_redirect_flows\ntable ip6 lb_redirect_flows\n"
            assert field.nft("list", "tables") == left
            with field.master.inside():
                appliance.start()
            wait_for_state(appliance, "on")
        load.wait_for(SERVER)
        outside, _ = load.stop()
        assert "!refused" not in outside.errors
        assert "!timeout" not in outside.errors


@pytest.mark.slow("whole appliances on a segment of their own")
def test_a_kill_of_the_proxy_and_its_workers_refuses_nobody_elsewhere(field: RedirectField):
    """The rules go when the last worker does; until then the kernel sees that nobody listens."""
    with field.appliance() as appliance, _Load(field) as load:
        wait_for_state(appliance, "on")
        for _ in range(_ROUNDS):
            load.wait_for(SERVER)
            _kill_proxy_with_workers(appliance)
            wait_until(appliance.accepting, what="workers are back", timeout=30)
            wait_for_state(appliance, "on")
        load.wait_for(SERVER)
        outside, _ = load.stop()
        assert "!refused" not in outside.errors
        assert "!timeout" not in outside.errors
