"""Events of virtual IPs beside a real keepalived reach a real rsyslogd over TLS, and only those named."""

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from support.network.namespaces import Node
from support.notifying.rsyslog import Rsyslog, rsyslog
from support.processes.waiting import wait_until
from support.run import tools
from support.supervisor.appliance import Appliance
from support.values.certificates import issue
from support.vrrp.keepalived import Instance, Keepalived
from support.vrrp.vrrp_field import VIP, Field

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "keepalived", "nft", "tcpdump", "rsyslogd", tools.RSYSLOG_TLS, root=True),
    pytest.mark.slow("real timers of several routers"),
]

_DEAF = (
    "add table ip deaf; add chain ip deaf in { type filter hook input priority 0; };"
    " add rule ip deaf in ip protocol vrrp drop"
)
"""Rules of a node that does not hear other routers, and is heard by them."""

_NAMED = ["vip-active", "vip-backup", "split-brain"]


@contextmanager
def _syslogd(node: Node, directory: Path) -> Iterator[Rsyslog]:
    """Run a rsyslogd in a node, which listens on its loopback."""
    with tempfile.TemporaryDirectory(prefix="lb-") as root, ExitStack() as stack:
        with node.inside():
            made = stack.enter_context(rsyslog(Path(root), certificates=issue(directory, "127.0.0.1")))
        yield made


@contextmanager
def _appliance(node: Node, syslogd: Rsyslog, authority: Path) -> Iterator[Appliance]:
    way = {"syslog": f"tls://127.0.0.1:{syslogd.tls_port}", "ca": str(authority), "events": _NAMED}
    virtual_ip = {
        "addresses": [f"{VIP}/24"],
        "interface": "eth0",
        "router_id": 42,
        "version": 3,
        "advert": "100ms",
        "priority": 100,
    }
    running = Appliance({"virtual_ips": {"api": virtual_ip}, "notify": {"log-server": way}})
    with node.inside():
        running.start()
    try:
        yield running
    finally:
        running.__exit__(*sys.exc_info())


def _wait_for(syslogd: Rsyslog, kind: str, *words: str) -> dict[str, str]:
    """Return the first message of a kind with these words in its structured data or its text."""

    def found() -> dict[str, str] | None:
        told = (each for each in syslogd.messages() if each["kind"] == kind)
        return next(
            (each for each in told if all(word in each["data"] + each["text"] for word in words)), None
        )

    return wait_until(found, what=f"rsyslogd has {kind} with {words}", timeout=60.0)


def test_a_split_brain_and_moves_are_told(ground: Field, tmp_path: Path):
    """With the other router's address, and why: it was active too, was handed over to, and has left."""
    peer = ground.two.address
    with (
        _syslogd(ground.one, tmp_path) as syslogd,
        _appliance(ground.one, syslogd, tmp_path / "ca.pem") as appliance,
    ):
        _wait_for(syslogd, "vip-active", 'subject="api"', 'to="active"')
        ground.two.run(["nft", _DEAF])
        with Keepalived(ground.two, Instance(priority=50)) as keepalived:
            keepalived.wait_for("MASTER")
            split = _wait_for(syslogd, "split-brain", peer)
            assert split["severity"] == "crit"
            assert "this router stays" in split["text"]
            ground.two.run(["nft", "delete table ip deaf"])
            keepalived.wait_for("BACKUP")
            appliance.command("vip", "move", "api")
            keepalived.wait_for("MASTER")
            _wait_for(syslogd, "vip-backup", 'cause="handed-over"', peer)
            before = len(syslogd.messages())
            keepalived.stop()
            wait_until(lambda: len(syslogd.messages()) > before, what="a further event is told", timeout=60)
            _wait_for(syslogd, "vip-active", 'cause="active-left"', peer)
        kinds = {each["kind"] for each in syslogd.messages()}
        assert kinds == set(_NAMED)
        assert "program-running" in {each["kind"] for each in _kept(appliance)}


def _kept(appliance: Appliance) -> list[dict[str, str]]:
    """Return the events that are kept, whoever is told of them."""
    found: list[dict[str, str]] = json.loads(appliance.command("events", "--json").stdout)
    return found
