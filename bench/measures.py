"""The measures: each takes a running proxy and returns numbers by name.

Rates are per second, CPU is user and system seconds of the proxy process per unit of work.
"""

import re
import resource
import socket
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass

from support.processes.processes import cpu_seconds, proportional, resident
from support.processes.waiting import wait_until
from support.run import tools

from bench.proxies import Proxy

BULK_BYTES = 256 << 20
_BUFFER = 1 << 20
REQUEST = b"GET /name HTTP/1.1\r\nHost: bench\r\n\r\n"

Numbers = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long to measure: slices of wrk in seconds, bodies of bulk, idle connections, requests."""

    seconds: float = 1.0
    slices: int = 4
    bodies: int = 8
    idle: int = 5000
    requests: int = 600


def short(proxy: Proxy, effort: Effort, *, at_once: int = 32) -> Numbers:
    """Measure one request per connection, 32 at a time."""
    rate, cpu = _wrk(proxy, effort, connections=at_once, close=True)
    return {"connections/s": rate, "CPU per connection": cpu}


def kept(proxy: Proxy, effort: Effort) -> Numbers:
    """Measure requests over 64 kept-alive connections."""
    rate, cpu = _wrk(proxy, effort, connections=64, close=False)
    return {"requests/s kept alive": rate, "CPU per request": cpu}


def bulk(proxy: Proxy, effort: Effort) -> Numbers:
    """Measure bodies of 256 MiB, one after the other, one connection each."""
    before, start = cpu_seconds(proxy.pid), time.monotonic()
    total = sum(_download(proxy.port) for _ in range(effort.bodies))
    wall, cpu = time.monotonic() - start, cpu_seconds(proxy.pid) - before
    return {"bulk GB/s": total / wall / 1e9, "CPU per GB": cpu / (total / 1e9)}


def idle(proxy: Proxy, effort: Effort) -> Numbers:
    """Measure memory of connections that have done one request and then stay open. The proxy is fresh."""
    _raise_descriptor_limit()
    for _ in range(200):  # code and tables that are made once are not counted
        _exchange_once(proxy.port)
    rss, pss = resident(proxy.pid), proportional(proxy.pid)
    with ExitStack() as stack:
        for _ in range(effort.idle):
            connection = stack.enter_context(_connect(proxy.port))
            connection.sendall(REQUEST)
            _read_answer(connection)
        # Buffers that a proxy lets go of only after a moment are not held against it.
        _settle(proxy.pid)
        return {
            "bytes RSS per idle connection": (resident(proxy.pid) - rss) / effort.idle,
            "bytes PSS per idle connection": (proportional(proxy.pid) - pss) / effort.idle,
        }


def latencies(ports: dict[str, int], effort: Effort, *, rate: float = 250.0) -> dict[str, Numbers]:
    """Measure request times for several ports in turn, so that a noisy moment hits all of them alike.

    Each has `rate` requests a second, half on a connection of their own, half on one that is kept.
    """
    pause = 1 / (rate * len(ports))
    fresh: dict[str, list[float]] = {name: [] for name in ports}
    held: dict[str, list[float]] = {name: [] for name in ports}
    due = time.monotonic()
    with ExitStack() as stack:
        connections = {name: stack.enter_context(_connect(port)) for name, port in ports.items()}
        for turn in range(effort.requests * 2):
            for name, port in ports.items():
                due = max(due + pause, time.monotonic() - pause)
                time.sleep(max(0.0, due - time.monotonic()))
                start = time.perf_counter()
                if turn % 2:
                    _exchange_once(port)
                    fresh[name].append(time.perf_counter() - start)
                    continue
                connections[name].sendall(REQUEST)
                _read_answer(connections[name])
                held[name].append(time.perf_counter() - start)
    return {
        name: {**_percentiles("new connection", fresh[name]), **_percentiles("kept", held[name])}
        for name in ports
    }


def burst(port: int, *, connections: int, at_once: int) -> None:
    """Make this many connections of one request each, `at_once` under way at a time."""
    for _ in range(connections // at_once):
        with ExitStack() as stack:
            opened = [stack.enter_context(_connect(port)) for _ in range(at_once)]
            for connection in opened:
                connection.sendall(REQUEST)
            for connection in opened:
                _read_answer(connection)


def _percentiles(what: str, times: list[float]) -> Numbers:
    ordered = sorted(times)
    return {
        f"p50 {what} us": ordered[len(ordered) // 2] * 1e6,
        f"p99 {what} us": ordered[len(ordered) * 99 // 100] * 1e6,
    }


def _wrk(proxy: Proxy, effort: Effort, *, connections: int, close: bool) -> tuple[float, float]:
    binary = tools.path("wrk")
    assert binary, "wrk is missing: make debian"
    header = ["-H", "Connection: close"] if close else []
    command = [binary, "-t1", f"-c{connections}", f"-d{effort.seconds:g}s", "--timeout", "10s", *header]
    before = _cpu(proxy)
    done = subprocess.run(
        [*command, f"http://127.0.0.1:{proxy.port}/name"], capture_output=True, text=True, check=True
    )
    cpu = _cpu(proxy) - before
    errors = re.search(r"Socket errors: .*|Non-2xx.*", done.stdout)
    assert not errors, f"{proxy.name}: {errors.group()}"
    requests = int(_found(r"(\d+) requests in", done.stdout))
    return float(_found(r"Requests/sec:\s*([\d.]+)", done.stdout)), cpu / requests


def _cpu(proxy: Proxy) -> float:
    return sum(cpu_seconds(pid) for pid in {proxy.pid, *(each.pid for each in proxy.workers)})


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match, text
    return match.group(1)


def _download(port: int) -> int:
    buffer = bytearray(_BUFFER)
    total = 0
    with _connect(port) as connection:
        connection.sendall(b"GET /bulk HTTP/1.0\r\n\r\n")
        while count := connection.recv_into(buffer):
            total += count
    assert total > BULK_BYTES, f"only {total} bytes came"
    return total


def _exchange_once(port: int) -> None:
    with _connect(port) as connection:
        connection.sendall(REQUEST)
        _read_answer(connection)


def _read_answer(connection: socket.socket) -> None:
    answer = b""
    while not answer.endswith(b"nginx\n"):
        chunk = connection.recv(4096)
        assert chunk, f"ended after {answer!r}"
        answer += chunk


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30.0)


def _settle(pid: int) -> None:
    last = [0]

    def unchanged() -> bool:
        last.append(resident(pid))
        return last[-1] == last[-2]

    wait_until(unchanged, what="the resident set no longer changes", pause=0.5, timeout=10.0)


def _raise_descriptor_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
