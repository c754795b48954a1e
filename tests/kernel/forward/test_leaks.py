"""Connections that the kernel forwards, ended in every way there is, leave nothing behind.

`E2E_FULL=1` makes 100,000 of them.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import pytest
from support.forward.forward_field import PORT, VIPS, ForwardField, wait_for_servers
from support.network import cut_clients
from support.processes.processes import descriptors, resident
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", root=True),
    pytest.mark.slow("whole appliances on a segment of their own"),
]

_FULL = os.environ.get("E2E_FULL") == "1"
_CONNECTIONS = 100_000 if _FULL else 2_000
_KILLS = 50 if _FULL else 5
_MEGABYTE = 1 << 20
_TIMES = ("established", "fin_wait", "close_wait", "last_ack", "time_wait", "close", "syn_sent", "syn_recv")
_ALL = ("s1", "s2", "s3")


def test_connections_cut_at_random_leave_nothing(balanced: ForwardField):
    """Rules, maps, sets, conntrack, places under the limit, memory and descriptors are as they were."""
    _let_conntrack_forget(balanced)
    six = {f"{name}v6": each for name, each in balanced.members(6).items()}
    pool = {"servers": {**balanced.members(), **six}, "on_down": "close-sessions"}
    with balanced.appliance(balanced.config(pool=pool, max_connections=_CONNECTIONS)) as appliance:
        wait_for_servers(appliance, *_ALL, *six)
        _cut(balanced, seed=1, count=_CONNECTIONS // 10, kills=1)  # what is made once is there now
        _wait_for_all(balanced, appliance)
        before, rules = _held(appliance), (balanced.rules("ip"), balanced.rules("ip6"))
        ended = _cut(balanced, seed=2, count=_CONNECTIONS, kills=_KILLS)
        assert set(ended) == {"closed", "reset", "vanished", "half-closed", "half-open"}
        _wait_for_all(balanced, appliance)
        assert (balanced.rules("ip"), balanced.rules("ip6")) == rules
        # A question of somebody is under way now and then, and is one more descriptor for that moment.
        wait_until(lambda: _held(appliance)["descriptors"] <= before["descriptors"], what="none is left")
        assert _held(appliance)["memory"] - before["memory"] < 4 * _MEGABYTE
        assert appliance.events("forward-rules-gone") == []
        assert set(balanced.shares(9)) == set(_ALL)


def test_places_under_the_limit_come_back(balanced: ForwardField):
    """Clients that vanish hold their places as long as conntrack knows them, and not longer."""
    _let_conntrack_forget(balanced, seconds=10)
    with balanced.appliance(balanced.config(max_connections=5)) as appliance:
        wait_for_servers(appliance, *_ALL)
        held = [balanced.session() for _ in range(5)]
        assert balanced.ask(timeout=0.5) == "!TimeoutError"
        for each in held:
            cut_clients.vanish(each.socket)
            each.close()
        wait_until(lambda: balanced.conntrack() == [], what="conntrack forgets", timeout=60.0)
        assert set(balanced.shares(9)) == set(_ALL)


def _let_conntrack_forget(balanced: ForwardField, *, seconds: int = 5) -> None:
    """Have the balancer's kernel forget silent connections after seconds, where five days are its own way."""
    with balanced.balancer.inside():
        for each in _TIMES:
            Path(f"/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_{each}").write_text(str(seconds))


def _cut(balanced: ForwardField, *, seed: int, count: int, kills: int) -> dict[str, int]:
    """Have clients come and go, while servers are killed and started again; return how they ended."""
    with tempfile.TemporaryFile() as output:
        command = [sys.executable, cut_clients.__file__, str(seed), str(count), str(PORT), *VIPS]
        running = balanced.client.start(command, output=output)
        for number in range(kills):
            name = _ALL[number % len(_ALL)]
            balanced.stop_server(name)
            balanced.start_server(name)
        assert running.wait(timeout=60 + count / 20) == 0
        output.seek(0)
        return dict(json.loads(output.read()))


def _wait_for_all(balanced: ForwardField, appliance: Appliance) -> None:
    """Wait until nothing is open and every server takes connections."""
    wait_until(lambda: balanced.conntrack() == [], what="conntrack knows none of them", timeout=60.0)
    wait_until(lambda: appliance.status()["frontends"][0]["current"] == 0, what="none is counted")  # type: ignore[index]  # JSON
    wait_until(
        lambda: {each["state"] for each in appliance.status()["pools"][0]["servers"]} == {"up"},  # type: ignore[index]  # JSON
        what="all servers are up",
        timeout=60.0,
    )
    wait_for_servers(appliance, *_ALL, *(f"{name}v6" for name in _ALL))


def _held(appliance: Appliance) -> dict[str, int]:
    """Return what the program `forward` holds."""
    pid = appliance.program_pid("forward")
    assert pid is not None
    return {"memory": resident(pid), "descriptors": descriptors(pid)}
