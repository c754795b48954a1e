"""What thousands of servers cost: an appliance with two workers, from its start to every question.

Nothing listens at the servers, and no traffic comes. Reloads change the file in two ways: one weight, which
programs apply as they run, and the limit of a frontend, which takes new workers. Times are what the one who
asks waits; processor time is that of all programs and of the command together.
"""

import json
import resource
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from statistics import median
from typing import Final

from support.network.ports import free_port
from support.processes.processes import cpu_seconds
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

SIZES: Final = ((10_000, 500), (40_000, 400))
"""Servers, and pools that have them, each with a frontend of its own."""

_FIRST_PORT: Final = 20_000

Found = dict[str, list[tuple[float, float]]]
"""By measure, for each round: seconds waited, and seconds of processor time."""


def measure(*, servers: int, pools: int, rounds: int, say: Callable[[str], None]) -> Found:
    """Return the times of each round."""
    found: Found = {}
    for number in range(rounds):
        say(f"{servers:,} servers, round {number + 1} of {rounds}")
        for name, times in _round(servers, pools).items():
            found.setdefault(name, []).extend(times)
    return found


def markdown(found: dict[str, Found]) -> str:
    """Return the table: min-median-max, a column for each size."""
    lines = [f"| measure | {' | '.join(found)} |", "|---" * (len(found) + 1) + "|"]
    names = list(next(iter(found.values())))
    for unit, which in (("s", 0), ("s of processor time", 1)):
        for name in names:
            cells = (_spread([each[which] for each in one[name]]) for one in found.values())
            lines.append(f"| {name}, {unit} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _spread(values: list[float]) -> str:
    return "-".join(f"{each:.2f}" for each in (min(values), median(values), max(values)))


def _round(servers: int, pools: int) -> Found:
    page = free_port()
    frontends = {f"f{number}": {} for number in range(pools)}
    with_page = {"bind": f"127.0.0.1:{page}"}
    appliance = Appliance({"api": {"frontends": frontends}, "stats": with_page})

    def write(*, weight: int = 1, connections: int = 1000) -> None:
        text = _text(servers, pools, page=page, weight=weight, connections=connections)
        appliance.paths.config.write_text(text)

    write()
    found: Found = {}

    def take(name: str, action: Callable[[], object]) -> None:
        before, begun = _spent(appliance), time.monotonic()
        action()
        waited = time.monotonic() - begun
        found.setdefault(name, []).append((waited, _spent(appliance) - before))

    take("appliance check", lambda: _command(appliance, "check"))
    before, begun = _spent(appliance), time.monotonic()
    try:
        appliance.launch()
        wait_until(lambda: _serves(_FIRST_PORT + pools - 1), what="it serves", timeout=120)
        found["start until it serves"] = [(time.monotonic() - begun, _spent(appliance) - before)]
        wait_until(lambda: _serves(page), what="the page answers", timeout=120)
        take("appliance status", lambda: _command(appliance, "status"))
        take("appliance status --json", lambda: _command(appliance, "status", "--json"))
        take("/metrics, first", lambda: _fetch(page))
        for _ in range(3):
            time.sleep(2)  # what is kept from the last page is old by then
            take("/metrics", lambda: _fetch(page))
        write(weight=2)
        take("reload, one weight", lambda: _reload(appliance))
        write(weight=2, connections=2000)
        take("reload, new workers", lambda: _reload(appliance))
        take("reload, nothing new", lambda: _reload(appliance))
    finally:
        appliance.stop(patience=60)
    return found


def _reload(appliance: Appliance) -> None:
    answer = appliance.reload(timeout=120.0)
    assert answer["ok"], json.dumps(answer)[:2000]


def _command(appliance: Appliance, *arguments: str) -> None:
    command = [sys.executable, "-m", "appliance.console", *arguments]
    subprocess.run(command, env=appliance.environment, stdout=subprocess.DEVNULL, check=False, timeout=600)


def _serves(port: int) -> bool:
    """Return whether a connection is accepted and not just in a queue: then something is said, or it ends."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=300) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            client.recv(1)
    except ConnectionRefusedError:
        return False
    except ConnectionResetError:
        return True
    return True


def _fetch(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=120) as answer:
        return len(answer.read())


def _spent(appliance: Appliance) -> float:
    """Return the processor time of the appliance's programs, and of commands that have ended."""
    commands = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(map(cpu_seconds, appliance.processes())) + commands.ru_utime + commands.ru_stime


def _text(servers: int, pools: int, *, page: int, weight: int, connections: int) -> str:
    """Return a configuration in which the first server has that weight, and the first frontend that limit."""
    each = servers // pools
    lines = [f"stats: {{ bind: 127.0.0.1:{page} }}", "api:", "  workers: 2", "  frontends:"]
    for number in range(pools):
        bind = f'bind: ["127.0.0.1:{_FIRST_PORT + number}"], pool: p{number}'
        limit = connections if number == 0 else 1000
        lines.append(f"    f{number}: {{ {bind}, max_connections: {limit} }}")
    lines.append("pools:")
    for number in range(servers):
        if number % each == 0:
            lines += [f"  p{number // each}:", "    check: false", "    servers:"]
        address = f"127.{1 + number // 62500}.{number // 250 % 250}.{number % 250 + 1}:8080"
        more = f", weight: {weight}" if number == 0 else ""
        lines.append(f'      s{number}: {{ address: "{address}"{more} }}')
    return "\n".join(lines) + "\n"
