"""A soft stop of an appliance with a virtual IP, and its log in a file: who writes, and who stops when."""

import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from support.network.namespaces import INTERFACE, Segment
from support.peers.backend import Backend
from support.processes.log_lines import logged
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", root=True),
    pytest.mark.slow("whole appliances on a segment of their own"),
]

_PORT: Final = 19446
_VIP: Final = "10.9.9.200"


def config(server: int, file: Path) -> dict[str, object]:
    """Return a file with one frontend and a virtual IP."""
    return {
        "api": {
            "workers": 1,
            "frontends": {"through": {"bind": [f"127.0.0.1:{_PORT}"], "pool": "servers"}},
        },
        "pools": {"servers": {"servers": {"one": {"address": f"127.0.0.1:{server}"}}}},
        "virtual_ips": {
            "api": {
                "addresses": [f"{_VIP}/24"],
                "interface": INTERFACE,
                "router_id": 7,
            }
        },
        "defaults": {"drain": "1s"},
        "log": {"file": str(file), "level": "debug"},
    }


def lines(file: Path) -> list[dict[str, str]]:
    """Return what was logged."""
    return logged(file)


def drains(file: Path) -> bool:
    """Say whether the master has told its workers to drain."""
    return any((each["program"], each["event"]) == ("proxy-api", "stopping") for each in lines(file))


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[tuple[Segment, Path]]:
    """Give a segment, and the name of a log file."""
    with Segment() as segment:
        yield segment, tmp_path / "appliance.log"


def test_the_virtual_ip_moves_away_before_sessions_end(ground: tuple[Segment, Path]):
    """It is given away at once, the session lives on, and afterwards nothing is left; all are in the log."""
    segment, file = ground
    node = segment.node("balancer")
    with node.inside(), Backend("one") as backend, Appliance(config(backend.port, file)) as appliance:
        wait_until(lambda: node.holds(_VIP), what="it is active", timeout=30.0)
        with socket.create_connection(("127.0.0.1", _PORT)) as session:
            wait_until(lambda: any(each.sessions for each in appliance.workers()), what="a session")
            appliance.signal(signal.SIGUSR1)
            wait_until(lambda: not node.holds(_VIP), what="the virtual IP has moved away", timeout=30.0)
            wait_until(lambda: drains(file), what="its workers drain")
            session.settimeout(3.0)
            with pytest.raises(TimeoutError):
                session.recv(1)
        assert appliance.wait(patience=30.0) == 0
        assert appliance.processes() == []
    ended = [each["name"] for each in lines(file) if each["event"] == "program-stopped"]
    assert ended == ["vrrp", "proxy-api", "health", "reload"]
    assert {each["program"] for each in lines(file)} >= {
        "supervisor",
        "reload",
        "health",
        "proxy-api",
        "vrrp",
    }
