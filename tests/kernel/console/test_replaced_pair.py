"""A pair of HAProxy and keepalived under load, replaced node by node: docs/moving-from-haproxy.md.

Each command of the document's section is run, in its order, on the machine that its prompt names; one that
this test does not know fails it. `E2E_FULL=1` has the load of a real site.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import yaml
from support.load.load import Load, Report
from support.network.namespaces import Node, Segment
from support.peers.backend import Backend
from support.peers.haproxy import HAProxy
from support.processes.processes import end
from support.processes.waiting import wait_until
from support.run import tools
from support.supervisor.appliance import Appliance

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "haproxy", "keepalived", "killall", root=True)]

_FULL: Final = os.environ.get("E2E_FULL") == "1"
_RATE: Final = 300 if _FULL else 100
_SESSIONS: Final = 200 if _FULL else 40
_DOCUMENT: Final = (Path(__file__).parents[3] / "docs" / "moving-from-haproxy.md").read_text()
_SECTION: Final = "From HAProxy and keepalived"
_COMMAND: Final = re.compile(r"^(lb-[01])# (.*)$", re.MULTILINE)
_MOVES: Final = 4
"""Of the virtual IP: away from `lb-0` and back to it, when it is replaced, and again on the way back."""

_UNDER_WAY: Final = 10
"""New connections that may be under way in the moment of a move."""

_APPLIANCE: Final = Path(sys.executable).parent / "appliance"
_VIP: Final = "192.0.2.100"
_PORT: Final = 6443

_HAPROXY_CFG: Final = """
global
  stats socket {{control}}
  hard-stop-after 1s
defaults
  mode tcp
  timeout connect 10s
  timeout client 1h
  timeout server 1h
  timeout queue 1m
frontend api
  bind *:{port}
  default_backend masters
backend masters
  balance roundrobin
{servers}
"""
_KEEPALIVED_CONF: Final = """
global_defs {{
  enable_script_security
  script_user root
}}
vrrp_script haproxy_lives {{
  script "{killall} -0 haproxy"
  interval 1
  weight 2
}}
vrrp_instance api {{
  state {state}
  interface eth0
  virtual_router_id 51
  priority {priority}
  advert_int 1
  authentication {{
    auth_type PASS
    auth_pass s3cret
  }}
  virtual_ipaddress {{
    {vip}/24
  }}
  track_script {{
    haproxy_lives
  }}
}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command of the document, and the machine on which it is given."""

    machine: str
    command: str


def _steps(heading: str) -> list[Step]:
    """Return the commands below a heading of the section."""
    section = _DOCUMENT.split(f"\n## {_SECTION}\n")[1].split("\n## ")[0]
    part = section.split(f"\n### {heading}\n")[1].split("\n### ")[0]
    return [Step(machine=machine, command=command) for machine, command in _COMMAND.findall(part)]


class Machine:
    """One of the pair: its files, and its three services, of which systemd would start and stop each."""

    def __init__(self, node: Node, haproxy_cfg: str, keepalived_conf: str) -> None:
        self.node = node
        self._directory = tempfile.TemporaryDirectory(prefix="lb-pair-")
        self.root = Path(self._directory.name)
        for name, text in (
            ("haproxy/haproxy.cfg", haproxy_cfg),
            ("keepalived/keepalived.conf", keepalived_conf),
        ):
            path = self.root / "etc" / name
            path.parent.mkdir(parents=True)
            path.write_text(text)
        (self.root / "etc" / "appliance").mkdir()
        self._services = {
            "haproxy": self._haproxy,
            "keepalived": self._keepalived,
            "appliance": self._appliance,
        }
        self._running: dict[str, ExitStack] = {}
        self.appliance: Appliance | None = None

    def start(self, service: str) -> None:
        """Start a service; it runs when this returns."""
        with ExitStack() as stack:
            self._services[service](stack)
            self._running[service] = stack.pop_all()

    def stop(self, service: str) -> None:
        """Stop a service; it has ended when this returns."""
        self._running.pop(service).close()

    def close(self) -> None:
        """Stop what runs, and remove the files."""
        for service in list(self._running):
            self.stop(service)
        self._directory.cleanup()

    def obey(self, command: str) -> None:
        """Do what a command of the document says."""
        match command.split():
            case ["systemctl", "enable", "--now", service]:
                self.start(service)
            case ["systemctl", "disable", "--now", service]:
                self.stop(service)
            case ["appliance", "status"]:
                assert self.appliance is not None
                wait_until(self._is_well, what="appliance status ends with 0", timeout=30)
            case ["appliance", *arguments]:
                self._command(arguments)
            case _:
                raise AssertionError(f"no test does this: {command}")

    def _command(self, arguments: list[str]) -> None:
        """Run a command of the appliance's, with the files of this machine."""
        here = [each.replace("/etc/", f"{self.root}/etc/") for each in arguments]
        environment = {**os.environ, "APPLIANCE_CONFIG": str(self.root / "etc/appliance/appliance.yaml")}
        with self.node.inside():
            done = subprocess.run(
                [_APPLIANCE, *here], env=environment, capture_output=True, text=True, check=False, timeout=60
            )
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"

    def _is_well(self) -> bool:
        return self.appliance is not None and self.appliance.command("status", check=False).returncode == 0

    def _haproxy(self, stack: ExitStack) -> None:
        text = (self.root / "etc/haproxy/haproxy.cfg").read_text()
        with self.node.inside():
            stack.enter_context(HAProxy(text))

    def _keepalived(self, stack: ExitStack) -> None:
        conf = self.root / "etc/keepalived/keepalived.conf"
        command = [tools.path("keepalived") or "keepalived", "--dont-fork", "--log-console", "--vrrp"]
        command += [
            f"--use-file={conf}",
            f"--pid={self.root / 'pid'}",
            f"--vrrp_pid={self.root / 'vrrp.pid'}",
        ]
        log = stack.enter_context((self.root / "keepalived.log").open("ab"))
        process = self.node.start(command, output=log)
        stack.callback(end, process, patience=10.0)

    def _appliance(self, stack: ExitStack) -> None:
        text = (self.root / "etc/appliance/appliance.yaml").read_text()
        with self.node.inside():
            self.appliance = stack.enter_context(Appliance(yaml.safe_load(text)))


class Pair:
    """Both machines, the servers behind them, and a client."""

    def __init__(self, segment: Segment, stack: ExitStack) -> None:
        servers, one, two, self.client = map(segment.node, ("servers", "lb-0", "lb-1", "client"))
        with servers.inside():
            backends = [stack.enter_context(Backend(f"master-{number}")) for number in range(3)]
        lines = "\n".join(f"  server {each.name} {servers.address}:{each.port} check" for each in backends)
        haproxy_cfg = _HAPROXY_CFG.format(port=_PORT, servers=lines)
        self.machines: dict[str, Machine] = {}
        for name, node, state, priority in (("lb-0", one, "MASTER", 101), ("lb-1", two, "BACKUP", 100)):
            killall = tools.path("killall") or "killall"
            conf = _KEEPALIVED_CONF.format(state=state, priority=priority, vip=_VIP, killall=killall)
            self.machines[name] = Machine(node, haproxy_cfg, conf)
            stack.callback(self.machines[name].close)

    def holder(self) -> str:
        """Return who has the virtual IP, "" where nobody or both have it."""
        found = [name for name, machine in self.machines.items() if machine.node.holds(_VIP)]
        return found[0] if len(found) == 1 else ""

    def wait_for_holder(self, name: str) -> None:
        """Wait until one of them, and only this one, has the virtual IP."""
        wait_until(lambda: self.holder() == name, what=f"{name} has the virtual IP", timeout=30)

    def follow(self, heading: str) -> Iterator[Step]:
        """Give the commands below a heading, and yield each when it is done."""
        for step in _steps(heading):
            self.machines[step.machine].obey(step.command)
            yield step


def test_every_command_of_the_section_is_given():
    """No command of the section is outside of the parts that the test below follows."""
    section = _DOCUMENT.split(f"\n## {_SECTION}\n")[1].split("\n## ")[0]

    assert len(_COMMAND.findall(section)) == sum(len(_steps(each)) for each in _PARTS)


_NOTHING_MOVES: Final = ("Look first", "The one without the virtual IP")
_PARTS: Final = (*_NOTHING_MOVES, "The one with the virtual IP", "Back")


@pytest.mark.slow("whole appliances on a segment of their own")
@pytest.mark.promise(
    "docs/moving-from-haproxy.md", "a pair of HAProxy and keepalived is replaced, and comes back"
)
def test_a_pair_is_replaced_and_comes_back():
    """No new connection is refused, whoever serves, and the virtual IP is where it was at the end."""
    with ExitStack() as stack:
        pair = Pair(stack.enter_context(Segment()), stack)
        for machine in pair.machines.values():
            machine.start("haproxy")
            machine.start("keepalived")
        pair.wait_for_holder("lb-0")
        with pair.client.inside():
            load = stack.enter_context(
                Load(host=_VIP, port=_PORT, sessions=_SESSIONS, rate=_RATE, pause=0.5, renew=True)
            )
        load.wait_for_sessions()
        told: list[str] = []
        for part in _PARTS:
            for step in pair.follow(part):
                pair.wait_for_holder(_HOLDERS.get((part, step), pair.holder() or "lb-0"))
                _served(load)
                told.append(_told(part, step, load.report()))
                if part in _NOTHING_MOVES:
                    assert load.report().ended == []
        load.stop_new()
        wait_until(lambda: load.report().under_way == 0, what="no new connection is under way", timeout=30)
        report = load.report()
        # What `-rP` shows, and docs/moving-from-haproxy.md has as its figures.
        sys.stderr.write("\n".join(told) + f"\n{report.completed} completed, {report.failures}\n")

        assert report.failures.get("refused", 0) == 0
        # Who was answered by one machine, and not yet through, when the address went to the other one.
        assert sum(report.failures.values()) <= _MOVES * _UNDER_WAY
        assert len(report.ended) <= _MOVES * _SESSIONS
        assert pair.holder() == "lb-0"


_WITH: Final = "The one with the virtual IP"
_HOLDERS: Final = {
    (_WITH, Step(machine="lb-0", command="systemctl disable --now keepalived")): "lb-1",
    (_WITH, Step(machine="lb-0", command="appliance status")): "lb-0",
    ("Back", Step(machine="lb-0", command="systemctl disable --now appliance")): "lb-1",
    ("Back", Step(machine="lb-0", command="systemctl enable --now keepalived")): "lb-0",
}
"""Who has the virtual IP after which step."""


def _served(load: Load) -> None:
    """Wait until new connections are answered now."""
    before = load.report().completed
    wait_until(lambda: load.report().completed > before + 20, what="clients are served", timeout=30)


def _told(part: str, step: Step, report: Report) -> str:
    failed = dict(sorted(report.failures.items()))
    return (
        f"{time.strftime('%H:%M:%S')} {part}: {step.machine} {step.command[:50]}: "
        f"{report.completed} completed, failures {failed}, "
        f"sessions ended {len(report.ended)}, slowest {report.latency_max:.2f} s"
    )
