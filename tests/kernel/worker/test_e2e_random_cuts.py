"""Connections whose both ends go at any moment leave nothing behind, whoever moves their bytes.

`E2E_FULL=1` makes 100,000 of them. With `forward: proxy` some wait in a queue, and some are cut while pipes
hold their bytes.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from itertools import cycle
from pathlib import Path

import pytest
from support.forward.forward_field import PORT, VIPS, ForwardField, counts
from support.network import random_cuts
from support.network.namespaces import Node
from support.processes.processes import command_line, resident
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", root=True),
    pytest.mark.slow("load on a segment of its own"),
]

_FULL = os.environ.get("E2E_FULL") == "1"
_CONNECTIONS = 100_000 if _FULL else 2_000
_GROWTH = 4 << 20
_SPARE = 16 * 2  # ends of pipes that a worker keeps for the next bulk transfer
_ALL = ("s1", "s2", "s3")
_BY_CHANCE = (random_cuts.__file__, "server")
_ENDS = ("closed", "reset", "vanished", "half-closed")
_STATES = ("established", "fin_wait", "close_wait", "last_ack", "time_wait", "close", "syn_sent", "syn_recv")
_FORGET = "5"  # seconds after which the balancer's kernel forgets a silent connection


@pytest.mark.parametrize("forward", ["proxy", "kernel"])
def test_connections_cut_at_any_moment_leave_nothing(balanced: ForwardField, forward: str):
    """Descriptors, pipes, memory, rules, conntrack, places, queues: as before; and every server serves."""
    _let_the_dead_be_silent(balanced)
    with balanced.appliance(_config(balanced, forward)) as appliance:
        pipes = _held(appliance, pipes=True)
        for name in _ALL:
            _replace(balanced, name, _BY_CHANCE)
        _cut(balanced, appliance, seed=1, count=_CONNECTIONS // 5)  # what is made once is there now
        _wait_for_none(balanced, appliance)
        _wait_for_servers(appliance)
        before, memory, rules = _held(appliance), _memory(appliance), _settled_rules(balanced)
        ended = _cut(balanced, appliance, seed=2, count=_CONNECTIONS)
        assert set(ended) >= {*_ENDS, *(f"early {each}" for each in _ENDS)}
        assert sum(ended.values()) == _CONNECTIONS
        _wait_for_none(balanced, appliance)
        _wait_for_servers(appliance)
        # A question of somebody, or a check, is under way now and then: one descriptor more for that moment.
        wait_until(lambda: _no_more(_held(appliance), before), what=f"no more is held than {before}")
        _assert_no_more(_held(appliance, pipes=True), pipes, _SPARE)
        _assert_no_more(_memory(appliance), memory, _GROWTH)
        assert _settled_rules(balanced) == rules
        assert appliance.events("internal-error") == []
        assert all(_counted(appliance, name) > _CONNECTIONS // 30 for name in _ALL)
        for name in _ALL:
            _replace(balanced, name)
        balanced.wait_for(*_ALL)


def _config(balanced: ForwardField, forward: str) -> dict[str, object]:
    """Return the configuration of servers in both versions of IP; those of a proxy have few places each."""
    quick = {
        "client": "2s",
        "client_fin": "1s",
        "server": "2s",
        "server_fin": "1s",
        "queue": "1s",
        "connect": "1s",
    }
    few = {"max_connections": 8} if forward == "proxy" else {}
    four = balanced.members(4, **dict.fromkeys(_ALL, few))
    six = {f"{name}v6": each for name, each in balanced.members(6, **dict.fromkeys(_ALL, few)).items()}
    pool = {"servers": {**four, **six}, "on_down": "close-sessions"}
    check = {"type": "tcp", "interval": "500ms", "timeout": "5s", "fall": 2, "rise": 1}
    config = balanced.config(forward=forward, pool={**pool, "check": check})
    return {**config, "defaults": {"drain": "2s", "timeouts": quick}}


def _let_the_dead_be_silent(balanced: ForwardField) -> None:
    """Have no kernel answer for a connection that has vanished, and none keep one for long."""
    for node in (balanced.client, *balanced.servers.values()):
        node.run(["nft", random_cuts.SILENCE])
    for node in (balanced.balancer, balanced.client, *balanced.servers.values()):
        _write(node, "ipv4/tcp_orphan_retries", "1")
    for each in _STATES:
        _write(balanced.balancer, f"netfilter/nf_conntrack_tcp_timeout_{each}", _FORGET)


def _write(node: Node, setting: str, value: str) -> None:
    with node.inside():
        Path("/proc/sys/net", setting).write_text(value)


def _cut(balanced: ForwardField, appliance: Appliance, *, seed: int, count: int) -> dict[str, int]:
    """Have clients come and go, while servers are killed and started again; return how they ended."""
    with tempfile.TemporaryFile() as output:
        command = [sys.executable, random_cuts.__file__, "clients", str(seed), str(count), str(PORT), *VIPS]
        running = balanced.client.start(command, output=output)
        for name in cycle(_ALL):
            if running.poll() is not None:
                break
            downs, ups = (_changes(appliance, word, name) for word in ("down", "up"))
            balanced.stop_server(name)
            _wait_for_more(appliance, running, "down", name, downs)
            balanced.start_server(name, _BY_CHANCE)
            _wait_for_more(appliance, running, "up", name, ups)
        output.seek(0)
        text = output.read()
        assert running.returncode == 0, text
        return dict(json.loads(text))


def _wait_for_more(
    appliance: Appliance, running: "subprocess.Popen[bytes]", word: str, name: str, before: int
) -> None:
    """Wait until a check has found a server down, or up, once more, or the clients have ended."""
    wait_until(
        lambda: running.poll() is not None or _changes(appliance, word, name) > before,
        what=f"{name} is {word}",
        timeout=120.0,
        pause=0.2,
    )


def _changes(appliance: Appliance, word: str, name: str) -> int:
    return sum(each["server"] == name for each in appliance.events(f"server-{word}"))


def _replace(balanced: ForwardField, name: str, *program: Sequence[str]) -> None:
    balanced.stop_server(name)
    balanced.start_server(name, *program)


def _counted(appliance: Appliance, name: str) -> int:
    """Return how many connections a server has had, in both versions of IP."""
    return sum(int(str(counts(appliance, each)["total"])) for each in (name, f"{name}v6"))


def _wait_for_none(balanced: ForwardField, appliance: Appliance) -> None:
    """Wait until nothing is open or waits, and nobody counts a connection."""
    wait_until(lambda: balanced.conntrack() == [], what="conntrack knows none of them", timeout=60.0)

    def counted() -> list[object]:
        status = appliance.status()
        return [
            status["frontends"][0]["current"],
            status["pools"][0]["current"],
            status["pools"][0]["queued"],
        ]  # type: ignore[index]  # JSON

    wait_until(lambda: counted() == [0, 0, 0], what="none is counted", timeout=60.0, pause=0.5)


def _wait_for_servers(appliance: Appliance) -> None:
    """Wait until all are up: one that was killed last is not in the rules before that."""

    def states() -> set[str]:
        return {each["state"] for each in appliance.status()["pools"][0]["servers"]}  # type: ignore[index]  # JSON

    wait_until(lambda: states() == {"up"}, what="all servers are up", timeout=60.0, pause=0.2)


def _held(appliance: Appliance, *, pipes: bool = False) -> dict[str, int]:
    """Return how many pipes, or how many other descriptors, each process of the appliance has."""
    return {
        _name(pid): sum(_is_pipe(each) == pipes for each in Path(f"/proc/{pid}/fd").iterdir())
        for pid in appliance.processes()
    }


def _is_pipe(descriptor: Path) -> bool:
    with suppress(FileNotFoundError):  # closed a moment ago
        return descriptor.readlink().name.startswith("pipe:")
    return False


def _memory(appliance: Appliance) -> dict[str, int]:
    return {_name(pid): resident(pid) for pid in appliance.processes()}


def _name(pid: int) -> str:
    return f"{pid} {command_line(pid)}"


def _no_more(found: dict[str, int], before: dict[str, int], more: int = 0) -> bool:
    return found.keys() == before.keys() and all(found[each] <= before[each] + more for each in before)


def _assert_no_more(found: dict[str, int], before: dict[str, int], more: int) -> None:
    assert _no_more(found, before, more), f"{found} after {before}"


def _settled_rules(balanced: ForwardField) -> list[list[str]]:
    """Return the rules when they stay as they are: `forward` writes a verdict a moment after it was made."""
    seen: list[list[list[str]]] = []

    def unchanged() -> bool:
        seen.append(_rules(balanced))
        return seen[-1] in seen[-2:-1]

    wait_until(unchanged, what="the rules stay as they are", pause=1.0)
    return seen[-1]


def _rules(balanced: ForwardField) -> list[list[str]]:
    return [balanced.rules(family) for family in ("ip", "ip6")]
