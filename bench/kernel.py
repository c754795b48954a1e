"""What the kernel forwards beside HAProxy with one thread: rates, processor time, what is added to a request.

Client, balancer and server are network namespaces on one bridge. In the balancer HAProxy and an appliance
with `forward: kernel` run side by side, each with a port of its own at the same nginx: ports of connections
that have ended are not free at once, and would be each other's. The processor time is that of processes,
HAProxy's and the program `forward`'s: what the kernel does in interrupts, for both, belongs to none.
"""

import contextlib
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from support.forward.forward_field import let_forward
from support.network.namespaces import Node, Segment
from support.processes.processes import cpu_seconds
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

from bench.table import ratio

_HAPROXY_PORT: Final = 7000
_KERNEL_PORT: Final = 7001
_DIRECT_PORT: Final = 8079
_NGINX: Final = """
worker_processes 1; daemon off; pid {directory}/nginx.pid; error_log /dev/null;
events {{ worker_connections 8192; }}
http {{
  access_log off; keepalive_requests 100000000;
  server {{
    listen 8079 backlog=4096; listen 8080 backlog=4096; listen 8081 backlog=4096;
    location / {{ return 200 'nginx'; }}
  }}
}}
"""
_HAPROXY: Final = """
global
  nbthread 1
  maxconn 7000
defaults
  mode tcp
  timeout connect 10s
  timeout client 1h
  timeout server 1h
frontend in
  bind :7000 backlog 4096
  default_backend out
backend out
  server nginx {server}:8080
"""
_LATENCY: Final = """
import json, socket, sys, time
times = {}
for _ in range(int(sys.argv[1])):
    for place in sys.argv[2:]:
        host, _, port = place.rpartition(":")
        time.sleep(1 / 250 / len(sys.argv[2:]))
        start = time.perf_counter()
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(b"GET / HTTP/1.1\\r\\nHost: bench\\r\\n\\r\\n")
            connection.recv(4096)
        times.setdefault(place, []).append(time.perf_counter() - start)
print(json.dumps([sorted(each)[len(each) // 2] * 1e6 for each in times.values()]))
"""

Results = dict[str, tuple[list[float], list[float]]]
"""By measure: what HAProxy had in each round, and what the kernel had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Where it is measured: by their ports the processes whose processor time is counted."""

    client: Node
    balancer: Node
    server: Node
    pids: dict[int, int]


def measure(*, rounds: int, say: Callable[[str], None]) -> Results:
    """Measure both in each round, in alternating order."""
    results: Results = {}
    with _field() as field:
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            for name, found in _round(field, first=number % 2).items():
                theirs, ours = results.setdefault(name, ([], []))
                theirs.append(found[0])
                ours.append(found[1])
    return results


def markdown(results: Results) -> str:
    """Return the table: the medians of both, and median [min-max] of the ratio within a round."""
    lines = ["| measure | HAProxy | forward: kernel | ratio |", "|---|---|---|---|"]
    for name, (theirs, ours) in results.items():
        lines.append(f"| {name} | {median(theirs):.3g} | {median(ours):.3g} | {ratio(theirs, ours)} |")
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def _field() -> Iterator[Field]:
    with contextlib.ExitStack() as stack:
        segment = stack.enter_context(Segment())
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lb-kernel-")))
        balancer, client, server = (segment.node(each) for each in ("balancer", "client", "server"))
        let_forward(balancer)
        for node in (balancer, client, server):
            _free_ports_soon(node)
        (directory / "nginx.conf").write_text(_NGINX.format(directory=directory))
        server.start(["nginx", "-c", str(directory / "nginx.conf")])
        (directory / "haproxy.cfg").write_text(_HAPROXY.format(server=server.address))
        haproxy = balancer.start(["haproxy", "-db", "-f", str(directory / "haproxy.cfg")])
        with balancer.inside():
            appliance = Appliance(_config(balancer, server))
            stack.push(appliance)
            appliance.start()
        appliance.wait_for_event(
            "forward-rules", lambda event: "nginx" in str(event["servers"]), timeout=30.0
        )
        wait_until(lambda: ":7000 " in balancer.run(["ss", "-Hntl"]), what="haproxy listens")
        forward = appliance.program_pid("forward")
        assert forward is not None, "its rules are there"
        pids = {_HAPROXY_PORT: haproxy.pid, _KERNEL_PORT: forward}
        yield Field(client=client, balancer=balancer, server=server, pids=pids)


def _free_ports_soon(node: Node) -> None:
    """Let ports be used again after a second, as loopback does, and have more of them.

    Else HAProxy searches for a free one for a millisecond after its first 28,000 connections.
    """
    with node.inside():
        for name, value in (("tcp_tw_reuse", "1"), ("ip_local_port_range", "2048 65000")):
            Path("/proc/sys/net/ipv4", name).write_text(value)


def _config(balancer: Node, server: Node) -> dict[str, object]:
    frontend = {"bind": [f"{balancer.address}:{_KERNEL_PORT}"], "pool": "servers", "forward": "kernel"}
    return {
        "api": {"frontends": {"main": frontend}},
        "pools": {"servers": {"servers": {"nginx": {"address": f"{server.address}:8081"}}}},
    }


def _round(field: Field, *, first: int) -> dict[str, tuple[float, float]]:
    found: dict[str, dict[int, float]] = {}
    for name, unit, arguments in (
        ("connections/s", "connection", ("-c32", "-H", "Connection: close")),
        ("requests/s kept alive", "request", ("-c64",)),
    ):
        for port in (_HAPROXY_PORT, _KERNEL_PORT)[:: 1 - 2 * first]:
            rate, cpu = _wrk(field, port, arguments)
            found.setdefault(name, {})[port] = rate
            found.setdefault(f"CPU per {unit}", {})[port] = cpu
    haproxy, kernel = _latencies(field)
    pairs = {name: (each[_HAPROXY_PORT], each[_KERNEL_PORT]) for name, each in found.items()}
    return {**pairs, "added p50 new connection us": (haproxy, kernel)}


def _wrk(field: Field, port: int, arguments: tuple[str, ...]) -> tuple[float, float]:
    before = cpu_seconds(field.pids[port])
    place = f"http://{field.balancer.address}:{port}/"
    said = field.client.run(["wrk", "-t1", "-d2s", "--timeout", "10s", *arguments, place])
    cpu = cpu_seconds(field.pids[port]) - before
    requests, rate = re.search(r"(\d+) requests in", said), re.search(r"Requests/sec:\s*([\d.]+)", said)
    assert requests, said
    assert rate, said
    return float(rate[1]), cpu / int(requests[1])


def _latencies(field: Field) -> tuple[float, float]:
    """Return what HAProxy and the kernel add to a new connection with a request, microseconds."""
    at = field.balancer.address
    places = (f"{field.server.address}:{_DIRECT_PORT}", f"{at}:{_HAPROXY_PORT}", f"{at}:{_KERNEL_PORT}")
    said = field.client.run([sys.executable, "-c", _LATENCY, "1000", *places], timeout=120.0)
    direct, haproxy, kernel = json.loads(said)
    return haproxy - direct, kernel - direct
