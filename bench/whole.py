"""What the whole appliance takes with nothing to do: memory, processor time, and how soon it serves.

Ours is the demo's appliance: supervisord, reload, health, stats, two masters with a worker each, seven
servers with a check a second. HAProxy (master and worker) has the same
frontends, servers and checks, and keepalived one virtual router, in a network namespace of its own. Of 16
workers one has the ingress. The servers run before either starts.
"""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from support.network.ports import accepts
from support.processes.processes import alive, children, command_line, end, proportional
from support.processes.waiting import wait_until
from support.run import tools

from appliance.console.demo.demo_site import DemoSite, site
from appliance.net.process import python
from bench.measures import Numbers

_SETTLED: Final = 6.0
_OFFSET: Final = 7100
_READY: Final = 9444
_WORKERS: Final = 5
_MOST_WORKERS: Final = 16
_RELOADS: Final = 5
_REST: Final = 2.0
_WORKER: Final = "appliance.programs.worker"
_MB: Final = 1 << 20

_HAPROXY: Final = """
global
  nbthread 2
defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h
frontend ready
  bind 127.0.0.1:{ready}
  mode http
  monitor-uri /haproxy_ready
frontend api
  bind 127.0.0.1:{api}
  default_backend masters
frontend http
  bind 127.0.0.1:{http}
  default_backend routers
frontend https
  bind 127.0.0.1:{https}
  default_backend routers-https
frontend stats
  bind 127.0.0.1:{stats}
  mode http
  stats enable
backend masters
  option httpchk GET /readyz?check
  default-server inter 1s check check-ssl verify none
  server master-0 127.0.0.21:{master}
  server master-1 127.0.0.22:{master}
  server master-2 127.0.0.23:{master}
backend routers
  option httpchk GET /healthz/ready
  default-server inter 1s check port {check}
  server router-0 127.0.0.11:{router}
  server router-1 127.0.0.12:{router}
backend routers-https
  option httpchk GET /healthz/ready
  default-server inter 1s check port {check}
  server router-0 127.0.0.11:{tls}
  server router-1 127.0.0.12:{tls}
"""
_KEEPALIVED: Final = """
global_defs { router_id bench }
vrrp_instance one {
  state MASTER
  interface one
  virtual_router_id 51
  priority 100
  advert_int 1
  virtual_ipaddress { 198.18.0.1/32 }
}
"""


@dataclass(frozen=True, slots=True)
class _Held:
    """Processes that are measured together, and when the first byte came."""

    pids: tuple[int, ...]
    first_byte: float


def measure(
    *, rounds: int, package: Path | None, seconds: float, say: Callable[[str], None]
) -> dict[str, list[Numbers]]:
    """Return the numbers of each round, by name; `package` is our compiled package, if it takes part."""
    found: dict[str, list[Numbers]] = {}
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        found.setdefault("HAProxy, keepalived", []).append(_others(seconds))
        found.setdefault("appliance", []).append(_ours(None, seconds))
        if package is not None:
            found.setdefault("compiled", []).append(_ours(package, seconds))
    return found


def markdown(found: dict[str, list[Numbers]]) -> str:
    """Return the table: the median of the rounds, or a dash for what there is not."""
    names = list(found)
    lines = [f"| measure | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for each in found["appliance"][0]:
        cells = [
            f"{median(one[each] for one in found[name]):,.2f}" if each in found[name][0] else "-"
            for name in names
        ]
        lines.append(f"| {each} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _ours(package: Path | None, seconds: float) -> Numbers:
    with site(offset=_OFFSET) as made, _servers(made), _appliance(made, package) as held:
        time.sleep(_SETTLED)  # what a start leaves to be done has been done
        pids = _family(held.pids[0])
        workers = [each for each in pids if _WORKER in command_line(each)]
        numbers = {
            "MB PSS of all programs": sum(map(proportional, pids)) / _MB,
            "ms CPU per second at rest, all programs": _at_rest(pids, seconds),
            "ms CPU per second at rest, one worker": _at_rest(workers, seconds) / len(workers),
            "ms from the start to the first byte": held.first_byte * 1e3,
        }
        text = made.paths.config.read_text()
        weights = [_reload(made, _weighted(text, each)) for each in range(2, 2 + _RELOADS)]
        limits = [_reload(made, _limited(text, each)) for each in range(800, 800 + _RELOADS)]
        more = _more_workers(made, held.pids[0], text, _WORKERS)
        private = median(map(_private, more)) / _MB
        _more_workers(made, held.pids[0], text, _MOST_WORKERS - 1)
        return {
            **numbers,
            "ms of a reload that changes a weight": median(weights),
            "ms of a reload that needs new workers": median(limits),
            "MB private to one more worker": private,
            "MB PSS of all programs, 16 workers": sum(map(proportional, _family(held.pids[0]))) / _MB,
        }


def _weighted(text: str, weight: int) -> str:
    return re.sub(r'(master-0: \{ address: "[^"]+")', rf"\1, weight: {weight}", text)


def _limited(text: str, connections: int) -> str:
    return re.sub(r"max_connections: \d+", f"max_connections: {connections}", text)


def _reload(made: DemoSite, text: str) -> float:
    """Reload another configuration at rest, and return the milliseconds until the answer."""
    assert text != made.paths.config.read_text()
    made.paths.config.write_text(text)
    time.sleep(_REST)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(made.paths.reload_socket))
        since = time.monotonic()
        client.sendall(b"reload\n")
        answer = client.makefile("rb").readline()
    assert json.loads(answer)["ok"], answer
    return (time.monotonic() - since) * 1e3


def _more_workers(made: DemoSite, supervisor: int, text: str, count: int) -> list[int]:
    """Give the group api so many workers, and return them when their start is over."""
    _reload(made, text.replace("workers: 1", f"workers: {count}", 1))

    def workers() -> list[int]:
        return [each for each in _family(supervisor) if '"group":"api"' in command_line(each)]

    wait_until(lambda: len(workers()) == count, what="the new workers alone are there", timeout=60)
    time.sleep(_REST)
    return workers()


def _others(seconds: float) -> Numbers:
    with tempfile.TemporaryDirectory(prefix="lb-whole-") as directory, contextlib.ExitStack() as stack:
        root = Path(directory)
        first_byte, pids = 0.0, []
        made = stack.enter_context(site(offset=_OFFSET))
        stack.enter_context(_servers(made))
        config = root / "haproxy.cfg"
        ports = {"ready": _READY, "api": 9445, "http": 8080, "https": 8443, "stats": 8404, "master": 16443}
        ports |= {"check": 11936, "router": 18080, "tls": 18443}
        config.write_text(_HAPROXY.format(**{name: port + _OFFSET for name, port in ports.items()}))
        held = stack.enter_context(
            _started([tools.path("haproxy") or "haproxy", "-W", "-db", "-f", str(config)])
        )
        first_byte, pids = held.first_byte, [held.pids[0]]
        if keepalived := _keepalived(root):
            pids.append(stack.enter_context(_process(keepalived)).pid)
        time.sleep(_SETTLED)
        everything = [one for each in pids for one in _family(each)]
        return {
            "MB PSS of all programs": sum(map(proportional, everything)) / _MB,
            "ms CPU per second at rest, all programs": _at_rest(everything, seconds),
            "ms from the start to the first byte": first_byte * 1e3,
        }


def _keepalived(root: Path) -> list[str] | None:
    """Return the command of keepalived in a network namespace, None where it cannot run."""
    binary, unshare = tools.path("keepalived"), shutil.which("unshare")
    if os.geteuid() != 0 or not binary or not unshare:
        return None
    config = root / "keepalived.conf"
    config.write_text(_KEEPALIVED)
    link = "ip link add one type veth peer name two; ip link set one up; ip link set two up"
    script = f"{link}; exec {binary} --dont-fork --vrrp -f {config} -p {root}/k.pid -r {root}/v.pid"
    return [unshare, "--net", "sh", "-c", script]


@contextlib.contextmanager
def _servers(made: DemoSite) -> Iterator[None]:
    """Run the demo's servers without its appliance, until they accept."""
    lines = made.include.read_text().splitlines()
    commands = [
        line.partition(" = ")[2].replace("%%", "%") for line in lines if line.startswith("command = ")
    ]
    with contextlib.ExitStack() as stack:
        for each in commands:
            stack.enter_context(_process(["sh", "-c", f"exec {each}"]))
        stack.callback(made.ending.touch)
        places = [(f"127.0.0.2{number}", 16443) for number in (1, 2, 3)]
        places += [(f"127.0.0.1{number}", port) for number in (1, 2) for port in (18080, 18443)]
        wait_until(
            lambda: all(accepts(port + _OFFSET, host) for host, port in places), what="the servers accept"
        )
        yield


@contextlib.contextmanager
def _appliance(made: DemoSite, package: Path | None) -> Iterator[_Held]:
    environment = {
        **os.environ,
        **made.paths.environment(),
        **({"PYTHONPATH": str(package)} if package else {}),
    }
    user = ["--user", "root"] if os.geteuid() == 0 else []
    with _started(python.command("appliance.console", "run", *user), environment) as held:
        yield held


@contextlib.contextmanager
def _started(command: Sequence[str], environment: dict[str, str] | None = None) -> Iterator[_Held]:
    """Start what answers on the port of readiness, and measure how soon it does."""
    since = time.monotonic()
    with _process(command, environment) as process:
        wait_until(lambda: _answers() or process.poll() is not None, what="the first byte", timeout=60)
        first_byte = time.monotonic() - since
        assert process.poll() is None, command
        yield _Held(pids=(process.pid,), first_byte=first_byte)


@contextlib.contextmanager
def _process(
    command: Sequence[str], environment: dict[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        end(process, patience=40)


def _answers() -> bool:
    try:
        with socket.create_connection(("127.0.0.1", _READY + _OFFSET), timeout=1) as client:
            client.sendall(b"GET /haproxy_ready HTTP/1.0\r\n\r\n")
            return client.recv(1) != b""
    except OSError:
        return False


def _family(pid: int) -> list[int]:
    """Return a process and all below it."""
    return [pid, *(each for child in children(pid) for each in _family(child))]


def _at_rest(pids: Sequence[int], seconds: float) -> float:
    """Return milliseconds of processor time a second, by the scheduler: ticks are too coarse."""
    before, since = _spent(pids), time.monotonic()
    time.sleep(seconds)  # what is measured is this time itself
    after = _spent(pids)
    spent = sum(after[each] - before.get(each, 0) for each in after)  # a thread that has ended counts nothing
    return spent / (time.monotonic() - since) / 1e6


def _spent(pids: Sequence[int]) -> dict[Path, int]:
    threads = [task for pid in pids if alive(pid) for task in Path(f"/proc/{pid}/task").iterdir()]
    return {task: int((task / "schedstat").read_text().split()[0]) for task in threads}


def _private(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))
