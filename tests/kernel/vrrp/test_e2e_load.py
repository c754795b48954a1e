"""Two whole appliances at 10 ms advertisements while their proxies use every core: nothing moves.

`E2E_FULL=1` keeps the load up for ten minutes. A machine that stands still itself for half a down interval,
as a virtual one does whose host is busy, proves nothing: then it is done again.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import pytest
from support.load.stalls import judged
from support.network.namespaces import Node
from support.peers.nginx import nginx
from support.processes.waiting import wait_until
from support.run import tools
from support.supervisor.appliance import Appliance, Values
from support.vrrp.vrrp_field import VIP, Field

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nginx", "tcpdump", "wrk", root=True)]

_SECONDS: Final = 600 if os.environ.get("E2E_FULL") == "1" else 15
_PORT: Final = 9445
_STALL: Final = 0.02
"""Seconds: the down interval is 36 ms, and the backup's own part of a stall is in it."""


def _config(server: str, *, priority: int) -> dict[str, object]:
    return {
        "api": {"frontends": {"kube-api": {"bind": [f"0.0.0.0:{_PORT}"], "pool": "masters"}}},
        "pools": {
            "masters": {
                "check": {"type": "tcp", "interval": "1s"},
                "servers": {"master-0": {"address": server}},
            }
        },
        "virtual_ips": {
            "api": {
                "addresses": [f"{VIP}/24"],
                "interface": "eth0",
                "router_id": 42,
                "version": 3,
                "advert": "10ms",
                "priority": priority,
            }
        },
    }


@contextmanager
def _appliance(node: Node, config: dict[str, object]) -> Iterator[Appliance]:
    with ExitStack() as stack:
        with node.inside():
            running = stack.enter_context(Appliance(config))
        yield running


def _router(appliance: Appliance) -> Values:
    routers = appliance.ask("vrrp", "status").get("routers")
    assert isinstance(routers, list)
    return dict(routers[0]) if routers else {}


def _wakeups(appliance: Appliance) -> str:
    status = appliance.ask("vrrp", "status")
    return f"{status['late_wakeups']} late, the latest by {status['latest_wakeup_s']} s, {status['realtime']}"


@pytest.mark.slow("every core under load for minutes")
@pytest.mark.promise("docs/sizing.md", "adverts each 10 ms: full load moves nothing")
def test_full_load_moves_nothing(ground: Field):
    """With every core busy in both appliances no virtual IP changes its place, at 10 ms advertisements."""
    judged(lambda: _load_both(ground), longest=_STALL)


def _load_both(ground: Field) -> None:
    with ExitStack() as stack:
        with ground.client.inside():
            server = f"{ground.client.address}:{stack.enter_context(nginx()).port}"
        one = stack.enter_context(_appliance(ground.one, _config(server, priority=150)))
        two = stack.enter_context(_appliance(ground.two, _config(server, priority=100)))
        ground.wait_for_holder(ground.one)
        wait_until(lambda: _router(two)["state"] == "backup", what="the other one is backup")
        before = _router(one)["transitions"], _router(two)["transitions"]
        mark = ground.capture.mark()
        wrk = [tools.path("wrk") or "wrk", "-t1", "-c64", f"-d{_SECONDS}s"]
        loads = [
            ground.client.start([*wrk, f"http://{address}:{_PORT}/name"])
            for address in (VIP, ground.two.address)
        ]
        for load in loads:
            assert load.wait(_SECONDS + 60) == 0
        # What `-rP` shows, and a failure: how late each of them was woken under this load.
        sys.stderr.write(f"one: {_wakeups(one)}\ntwo: {_wakeups(two)}\n")
        after = _router(one)["transitions"], _router(two)["transitions"]
        assert after == before
        assert ground.senders(since=mark) == {ground.one.address}
        ground.wait_for_holder(ground.one)
        served = [appliance.ask("proxy-api", "status") for appliance in (one, two)]
        assert all(status["ok"] for status in served)
