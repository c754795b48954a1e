"""What is measured: one HAProxy thread and one of our workers, each a fresh process before the same nginx."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from support.network.ports import accepts, free_port
from support.processes.processes import running
from support.processes.waiting import wait_until
from support.programs.lone_worker import lone_worker
from support.run import tools
from support.values.snapshots import bind, frontend, group, pool, server, snapshot

from appliance.model.snapshot.keepalive import KeepAlive

CONNECTIONS = 7000
_KEEPALIVE = KeepAlive(idle=60.0, interval=10.0, count=3)  # the configuration's default
_HAPROXY = """
global
  nbthread 1
  maxconn {connections}
defaults
  mode tcp
  timeout connect 10s
  timeout client 1h
  timeout server 1h
  {options}
frontend in
  bind 127.0.0.1:{port} backlog 4096
  default_backend out
backend out
  balance roundrobin
  server nginx 127.0.0.1:{server}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """A running proxy: where it listens, and the process whose CPU and memory are counted."""

    name: str
    port: int
    pid: int


Start = Callable[[int], contextlib.AbstractContextManager[Proxy]]


@contextlib.contextmanager
def haproxy(server_port: int, *, options: str = "", name: str = "haproxy") -> Iterator[Proxy]:
    """Run HAProxy with one thread in TCP mode, in the foreground as one process."""
    binary, port = tools.path("haproxy"), free_port()
    assert binary, "haproxy is missing: make debian"
    with tempfile.TemporaryDirectory(prefix="lb-haproxy-") as directory:
        config, log = Path(directory) / "haproxy.cfg", Path(directory) / "log"
        config.write_text(
            _HAPROXY.format(port=port, server=server_port, connections=CONNECTIONS, options=options)
        )
        with running([binary, "-db", "-f", str(config)], log=log) as process:
            wait_until(lambda: accepts(port) or process.poll() is not None, what="haproxy accepts")
            assert process.poll() is None, log.read_text()
            yield Proxy(name=name, port=port, pid=process.pid)


def haproxy_splice(server_port: int) -> contextlib.AbstractContextManager[Proxy]:
    """Run HAProxy with `splice-auto`, which is not its default."""
    return haproxy(server_port, options="option splice-auto", name="haproxy+splice")


@contextlib.contextmanager
def worker(server_port: int, *, package: Path | None = None, name: str = "appliance") -> Iterator[Proxy]:
    """Run one of our workers, from the copy of our package in the directory `package` if one is given."""
    port = free_port()
    wanted = snapshot(
        groups=[
            group(
                frontends=[
                    frontend(
                        binds=[bind(port)],
                        max_connections=CONNECTIONS,
                        timeout_client=3600.0,
                        keepalive=_KEEPALIVE,
                    )
                ]
            )
        ],
        pools=[pool(servers=[server(port=server_port)], timeout_server=3600.0, keepalive=_KEEPALIVE)],
    )
    with lone_worker(wanted, package=package) as running_worker:
        wait_until(lambda: accepts(port), what="the worker accepts")
        yield Proxy(name=name, port=port, pid=running_worker.pid)
