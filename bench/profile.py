"""Where the time goes: syscalls per connection of each proxy, counted by strace."""

import re
import subprocess
import tempfile
import time
from pathlib import Path

from support.peers.nginx import nginx
from support.processes.waiting import wait_until
from support.run import tools

from bench import measures
from bench.proxies import Proxy, Start

_CONNECTIONS = 2000


def profile(starts: dict[str, Start]) -> str:
    """Return a table of the syscalls that one short connection costs each proxy."""
    counted = {}
    with nginx() as server:
        for name, start in starts.items():
            with start(server.port) as proxy:
                counted[name] = _syscalls(proxy)
    names = sorted({name for counts in counted.values() for name in counts})
    lines = [f"| syscall | {' | '.join(counted)} |", f"|---|{'---|' * len(counted)}"]
    lines += [_row(name, [counts.get(name, 0.0) for counts in counted.values()]) for name in names]
    lines.append(_row("all", [sum(counts.values()) for counts in counted.values()]))
    return "\n".join(lines) + "\n"


def _row(name: str, values: list[float]) -> str:
    return f"| {name} | {' | '.join(f'{value:.2f}' for value in values)} |"


def _syscalls(proxy: Proxy) -> dict[str, float]:
    """Return calls per connection, 16 at a time so that wake-ups are shared as under load."""
    strace = tools.path("strace")
    assert strace, "strace is missing: make debian"
    with tempfile.TemporaryDirectory(prefix="lb-strace-") as directory:
        output = Path(directory) / "counts"
        tracer = subprocess.Popen(
            [strace, "-f", "-c", "-o", str(output), "-p", str(proxy.pid)], stderr=subprocess.DEVNULL
        )
        try:
            wait_until(lambda: _traced(proxy.pid), what="strace is attached")
            measures.burst(proxy.port, connections=_CONNECTIONS, at_once=16)
            time.sleep(0.2)  # the last closes are still under way, and nothing tells when they are done
        finally:
            tracer.terminate()
            tracer.wait()
        return _parse(output.read_text())


def _traced(pid: int) -> bool:
    return not re.search(r"^TracerPid:\s+0$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)


def _parse(text: str) -> dict[str, float]:
    rows = (line.split() for line in text.splitlines())
    return {
        fields[-1]: int(fields[3]) / _CONNECTIONS
        for fields in rows
        if len(fields) >= 5 and fields[0][0].isdigit() and fields[-1] != "total"
    }
