"""`vrrp` and its tracker hang: ended, named and started again, as after `kill -9`."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from support.network.namespaces import Node
from support.processes.processes import alive
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.vrrp.vrrp_field import Field

from appliance.net.boards import heartbeats

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "tcpdump", root=True),
    pytest.mark.slow("real timers of several routers"),
]

_SPIN = signal.SIGRTMIN + 5
_CUSTOMIZED = f"""\
import signal
def spin(*_):
    while True:
        pass
signal.signal({int(_SPIN)}, spin)
"""
_HANGS = pytest.mark.parametrize("how", [signal.SIGSTOP, _SPIN], ids=["stopped", "spinning"])


@contextmanager
def _appliance(node: Node, *, priority: int, watchdog: str = "3s") -> Iterator[Appliance]:
    virtual_ip = {
        "addresses": ["192.0.2.100/24"], "interface": "eth0", "version": 3, "advert": "100ms",
        "router_id": 42, "priority": priority, "track": {"fine": {"script": "/bin/true", "interval": "1s"}},
    }  # fmt: skip
    configuration = {"virtual_ips": {"api": virtual_ip}, "watchdog": watchdog}
    with ExitStack() as stack:
        with node.inside():
            running = stack.enter_context(Appliance(configuration))
        yield running


@pytest.fixture(autouse=True)
def _spinning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every Python program a signal that it spins on, in its main thread."""
    (tmp_path / "sitecustomize.py").write_text(_CUSTOMIZED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)


def _pid(appliance: Appliance, program: str) -> int:
    """Return a program's process once it beats: one that starts is given a minute."""
    found = heartbeats.read(appliance.paths.heartbeat(program))
    return found.pid if found is not None and found.beat else 0


def _well(appliance: Appliance) -> bool:
    return appliance.command("status", check=False).returncode == 0


def _hang(appliance: Appliance, program: str, how: int) -> None:
    """Let it hang, and return when it is named, gone, and back under another number."""
    pid = wait_until(lambda: _pid(appliance, program), what=f"{program} runs")
    os.kill(pid, how)
    hung = {"name": program, "pid": pid}
    appliance.wait_for_event("program-hung", lambda event: hung.items() <= event.items(), timeout=90.0)
    wait_until(lambda: not alive(pid), what="it is ended")
    wait_until(lambda: _pid(appliance, program) not in {0, pid}, what="it is back")


@_HANGS
def test_a_vrrp_that_hangs_is_replaced(ground: Field, how: int):
    """The peer holds the address meanwhile; afterwards one node holds it again, the better one."""
    # One that spins takes a processor, by its real-time priority, and the peer's programs wait for the rest.
    peer = _appliance(ground.two, priority=100, watchdog="60s")
    with _appliance(ground.one, priority=150) as one, peer as two:
        ground.wait_for_holder(ground.one)
        wait_until(lambda: _well(two), what="the peer is well")
        _hang(one, "vrrp", how)
        wait_until(lambda: ground.holders() == [ground.one], what="one holder again", timeout=60.0)
        wait_until(lambda: _well(one) and _well(two), what="nobody is unwell", timeout=120.0)
        assert two.events("program-hung") == []


@_HANGS
def test_a_tracker_that_hangs_is_replaced(ground: Field, how: int):
    """The address stays where it is, and what is tracked is looked at again."""
    with _appliance(ground.one, priority=150) as one:
        ground.wait_for_holder(ground.one)
        _hang(one, "tracker", how)
        assert ground.holders() == [ground.one]
