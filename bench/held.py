"""Connections that are held: memory, processor time at rest, and what it costs to look at all of them.

Eight processes of each proxy, each with its own nginx and its own client, so that a usual limit of open files
(20,000) is enough for 50,000 connections. Our workers look at every session once a second for its timeouts;
what that costs is the processor time at rest with the connections, less that without them.
"""

import contextlib
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

from support.peers.nginx import nginx
from support.processes.processes import cpu_seconds, end, resident

from bench import measures
from bench.proxies import Proxy, Start
from bench.rounds import Results

PROCESSES: Final = 8
CONNECTIONS: Final = 50_000
_HOLDER: Final = """
import resource, socket, sys
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
port, count = map(int, sys.argv[1:])
held = []
for _ in range(count):
    held.append(connection := socket.create_connection(("127.0.0.1", port), timeout=60.0))
    connection.sendall(b"GET /name HTTP/1.1\\r\\nHost: bench\\r\\n\\r\\n")
    answer = b""
    while not answer.endswith(b"nginx\\n"):
        answer += (chunk := connection.recv(4096))
        assert chunk, answer
print("held", flush=True)
sys.stdin.read()
"""


def measure(
    starts: dict[str, Start],
    *,
    rounds: int,
    connections: int,
    seconds: float,
    say: Callable[[str], None],
    processes: int = PROCESSES,
) -> Results:
    """Return the numbers of every round; processor time is taken over so many seconds at rest."""
    results: Results = defaultdict(lambda: defaultdict(list))
    for number in range(rounds):
        for name, start in starts.items() if number % 2 == 0 else reversed(starts.items()):
            say(f"round {number + 1} of {rounds}: {name}")
            for what, value in _held(start, processes, connections, seconds).items():
                results[what][name].append(value)
    return results


def _held(start: Start, processes: int, connections: int, seconds: float) -> measures.Numbers:
    each = connections // processes
    with ExitStack() as stack:
        running = [stack.enter_context(start(stack.enter_context(nginx()).port)) for _ in range(processes)]
        for proxy in running:
            measures.burst(proxy.port, connections=200, at_once=1)  # what is made once is not counted
        without, empty = _at_rest(running, seconds), _memory(running)
        holders = [stack.enter_context(_holding(proxy.port, each)) for proxy in running]
        for holder in holders:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n", f"a client of {each} connections has failed"
        time.sleep(1.0)  # one look at all sessions: the first one sets options
        with_them, full = _at_rest(running, seconds), _memory(running)
    return {
        f"MB RSS of {connections:,} held": (full - empty) / 1e6,
        "bytes RSS per held connection": (full - empty) / connections,
        f"ms CPU per second at rest, {connections:,} held": with_them * 1e3,
        "ms CPU per second at rest, none held": without * 1e3,
        f"ms CPU per second for {connections:,} held": (with_them - without) * 1e3,
    }


def _at_rest(running: list[Proxy], seconds: float) -> float:
    """Return the processor time of all in a second in which nothing comes."""
    before, since = sum(cpu_seconds(each.pid) for each in running), time.monotonic()
    time.sleep(seconds)
    return (sum(cpu_seconds(each.pid) for each in running) - before) / (time.monotonic() - since)


def _memory(running: list[Proxy]) -> int:
    return sum(resident(each.pid) for each in running)


@contextlib.contextmanager
def _holding(port: int, count: int) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(port), str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        end(process)
