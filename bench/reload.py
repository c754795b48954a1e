"""What a reload costs that brings new workers: sessions move to them, HAProxy's stay in the old process.

Ours are two workers, of which the one hands its sessions over to the other, as their master would have it.
HAProxy's is a new process that is told of the old one (`-sf`). Some of the sessions exchange a short line
every few milliseconds: the longest that one of them waits for its answer is the pause, and the same without a
reload, just before, is what the machine does by itself.
"""

import contextlib
import resource
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from support.network.ports import free_port
from support.peers.backend import Backend
from support.processes.processes import alive, cpu_seconds
from support.processes.waiting import wait_until
from support.run import tools
from support.worker.lone_worker import generations

from bench import proxies
from bench.measures import Numbers

SESSIONS = (
    9500  # two descriptors for each, of the 20,000 that a process has where nobody has raised the limit
)
_PROBES = 20
_EVERY = 0.004
_LINE = b"line 1\n"


def measure(
    *, sessions: int, rounds: int, package: Path | None, say: Callable[[str], None]
) -> dict[str, list[Numbers]]:
    """Return the numbers of each round, by name; `package` is our compiled package, if it takes part."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    found: dict[str, list[Numbers]] = {}
    with Backend("bench") as server:
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            found.setdefault("haproxy", []).append(_haproxy(server.port, sessions))
            found.setdefault("appliance", []).append(_ours(server.port, sessions, None))
            if package is not None:
                found.setdefault("compiled", []).append(_ours(server.port, sessions, package))
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return found


def markdown(found: dict[str, list[Numbers]]) -> str:
    """Return the table: the median of the rounds, or a dash for what there is not."""
    names = list(found)
    measures = list(found["appliance"][0])
    lines = [f"| measure | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for each in measures:
        cells = [
            f"{median(one[each] for one in found[name]):,.1f}" if each in found[name][0] else "-"
            for name in names
        ]
        lines.append(f"| {each} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _ours(server_port: int, sessions: int, package: Path | None) -> Numbers:
    port = free_port()
    with generations(proxies.snapshot_of(port, server_port), package=package) as (old, new):
        new.process.send_signal(signal.SIGSTOP)  # all clients come to the old one
        with _open(port, sessions) as pulse:
            new.process.send_signal(signal.SIGCONT)
            quiet = pulse.longest_over(1.0)
            before, cpu = resource.getrusage(resource.RUSAGE_CHILDREN), cpu_seconds(old.pid)
            new_cpu, start = cpu_seconds(new.pid), time.monotonic()
            pulse.forget()
            old.ask("drain", deadline=2e9)
            old.ask("move", generation=2, workers=[0])
            old.process.wait()  # not asked for while it works: that would be work, too
            wall = time.monotonic() - start
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime - cpu
            spent += cpu_seconds(new.pid) - new_cpu
            assert new.ask("status")["sessions"] == sessions
            return _numbers(sessions, spent, pulse.longest, quiet) | {
                "ms until the old process is gone": wall * 1e3
            }


def _haproxy(server_port: int, sessions: int) -> Numbers:
    with proxies.haproxy(server_port) as old, _open(old.port, sessions) as pulse:
        quiet = pulse.longest_over(1.0)
        cpu = cpu_seconds(old.pid)
        pulse.forget()
        with proxies.haproxy(server_port, port=old.port, replaces=old.pid) as new:
            wait_until(lambda: _listens_no_more(old.pid), what="the old one listens no more")
            spent = cpu_seconds(old.pid) - cpu + cpu_seconds(new.pid)
            assert alive(old.pid)  # until the last session has ended
            return _numbers(sessions, spent, pulse.longest, quiet)


def _listens_no_more(pid: int) -> bool:
    listed = subprocess.run(
        [tools.path("ss") or "ss", "-Hltnp"], capture_output=True, text=True, check=True
    ).stdout
    return f"pid={pid}," not in listed


def _numbers(sessions: int, spent: float, longest: float, quiet: float) -> Numbers:
    return {
        "open sessions": sessions,
        "processor ms per 1,000 sessions": spent * 1e6 / sessions,
        "longest pause of a session, ms": longest * 1e3,
        "the same without a reload, ms": quiet * 1e3,
    }


class _Pulse:
    """Sessions that exchange a line every few milliseconds; `longest` is the longest wait, in seconds."""

    def __init__(self, clients: list[socket.socket]) -> None:
        self.longest = 0.0
        self._clients = clients
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def forget(self) -> None:
        """Begin anew."""
        self.longest = 0.0

    def longest_over(self, seconds: float) -> float:
        """Return the longest wait of the next so many seconds."""
        self.forget()
        time.sleep(seconds)  # what is measured is this time itself
        return self.longest

    def close(self) -> None:
        """Stop."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for each in self._clients:
                selector.register(each, selectors.EVENT_READ)
            asked = dict.fromkeys(self._clients, 0.0)
            while not self._over.is_set():
                now = time.perf_counter()
                for each, since in asked.items():
                    if not since:
                        each.send(_LINE)
                        asked[each] = now
                until = now + _EVERY
                while (left := until - time.perf_counter()) > 0:
                    for key, _ in selector.select(left):
                        each = key.fileobj
                        assert isinstance(each, socket.socket)
                        assert each.recv(100) == b"bench 1\n"
                        self.longest = max(self.longest, time.perf_counter() - asked[each])
                        asked[each] = 0.0


@contextlib.contextmanager
def _open(port: int, sessions: int) -> Iterator[_Pulse]:
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(sessions):
            clients.append(stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60)))
            clients[-1].sendall(_LINE)
            assert clients[-1].recv(100) == b"bench 1\n"
        pulse = _Pulse(clients[:: max(1, sessions // _PROBES)])
        try:
            yield pulse
        finally:
            pulse.close()
