"""Health checks of HAProxy, and ours made of the same haproxy.cfg, of the same servers."""

from collections.abc import Mapping
from dataclasses import dataclass

from support.network.ports import free_port
from support.peers.haproxy import HAProxy
from support.processes.waiting import wait_until
from support.translation.haproxy_files import NO_FILES

from appliance.core.checks.check_outcome import CheckOutcome
from appliance.model.loading.loading import load
from appliance.net.probing.probe import Probe
from appliance.net.probing.tls_contexts import TlsContexts
from appliance.translation.haproxy.reader import translate
from appliance.translation.import_result import import_result


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Whom HAProxy's checks found fit, and how ours ended, by the names of the servers."""

    theirs: Mapping[str, bool]
    outcomes: Mapping[str, CheckOutcome]

    @property
    def ours(self) -> Mapping[str, bool]:
        """Whom our checks found fit."""
        return {name: each.passed for name, each in self.outcomes.items()}


def judged(checks: Mapping[str, tuple[str, int]], *, timeout: str) -> Judged:
    """Have servers judged by both: each by the lines of a section of its own, on its port of 127.0.0.1."""
    text = _haproxy_cfg(checks, timeout)
    outcomes = _by_us(text)
    with HAProxy(text) as haproxy:
        wait_until(
            lambda: len(haproxy.check_results()) == len(checks), what="HAProxy has checked", timeout=60
        )
        theirs = haproxy.check_results()
    return Judged(theirs={name: each == "L7OK" for name, each in theirs.items()}, outcomes=outcomes)


def _haproxy_cfg(checks: Mapping[str, tuple[str, int]], timeout: str) -> str:
    sections = "\n".join(
        f"listen {name}\n  bind 127.0.0.1:{free_port()}\n  {lines}\n"
        f"  server {name} 127.0.0.1:{port} check inter 1s fall 1 rise 1"
        for name, (lines, port) in checks.items()
    )
    return f"""
global
  stats socket {{control}}
defaults
  mode tcp
  timeout connect 5s
  timeout client 5s
  timeout server 5s
  timeout check {timeout}
{sections}
"""


def _by_us(text: str) -> dict[str, CheckOutcome]:
    imported = import_result([translate(text, source="haproxy.cfg", environment={}, read=NO_FILES)])
    assert imported.ok, imported.problems
    snapshot = load(imported.yaml, source="a.yaml", number=1).snapshot
    assert snapshot is not None
    servers = [server for pool in snapshot.pools for server in pool.servers]
    probes = {
        each.name: Probe(each.check, each.host, each.port, TlsContexts()) for each in servers if each.check
    }
    return {name: each.run() for name, each in probes.items()}
