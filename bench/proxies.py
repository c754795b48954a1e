"""What is measured: one HAProxy thread and one of our workers, each a fresh process before the same nginx."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from support.network.ports import accepts, free_port
from support.processes.processes import running
from support.processes.waiting import wait_until
from support.run import tools
from support.values.snapshots import bind, frontend, group, pool, server, snapshot
from support.worker.lone_worker import LoneWorker, lone_worker, workers

from appliance.model.snapshot.frontends import KeepAlive
from appliance.model.snapshot.snapshot import Snapshot

CONNECTIONS = 9_900
_SPLICED_CONNECTIONS = 7_000  # HAProxy wants descriptors for pipes too, below a limit of 20,000 for all
_KEEPALIVE = KeepAlive(idle=60.0, interval=10.0, count=3)  # the configuration's default
_HAPROXY = """
global
  nbthread {threads}
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


STREAM_MODULE = "/usr/lib/nginx/modules/ngx_stream_module.so"
_NGINX = f"""
load_module {STREAM_MODULE};
daemon off;
master_process off;
pid {{directory}}/nginx.pid;
error_log {{directory}}/error.log warn;
worker_rlimit_nofile 20000;
events {{{{ worker_connections 16000; accept_mutex off; }}}}
stream {{{{
  server {{{{
    listen 127.0.0.1:{{port}} backlog=4096;
    proxy_pass 127.0.0.1:{{server}};
    proxy_connect_timeout 10s;
    proxy_timeout 1h;
  }}}}
}}}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """A running proxy: where it listens, and the process whose CPU and memory are counted.

    `workers` are those of ours, where there are several.
    """

    name: str
    port: int
    pid: int
    workers: tuple[LoneWorker, ...] = ()


Start = Callable[[int], contextlib.AbstractContextManager[Proxy]]


@contextlib.contextmanager
def haproxy(
    server_port: int,
    *,
    options: str = "",
    name: str = "haproxy",
    threads: int = 1,
    binary: str | None = None,
    port: int | None = None,
    replaces: int | None = None,
) -> Iterator[Proxy]:
    """Run HAProxy in TCP mode, in the foreground as one process; `binary` is another one than Debian's.

    With `replaces`, a process id, that one stops to listen and goes on with what it has.
    """
    binary, port = binary or tools.path("haproxy"), port or free_port()
    assert binary, "haproxy is missing: make debian"
    with tempfile.TemporaryDirectory(prefix="lb-haproxy-") as directory:
        config, log = Path(directory) / "haproxy.cfg", Path(directory) / "log"
        config.write_text(
            _HAPROXY.format(
                port=port,
                server=server_port,
                connections=_SPLICED_CONNECTIONS if "splice" in options else CONNECTIONS,
                options=options,
                threads=threads,
            )
        )
        command = [binary, "-db", "-f", str(config), *(["-sf", str(replaces)] if replaces else [])]
        with running(command, log=log) as process:
            wait_until(lambda: accepts(port) or process.poll() is not None, what="haproxy accepts")
            assert process.poll() is None, log.read_text()
            yield Proxy(name=name, port=port, pid=process.pid)


def haproxy_splice(server_port: int) -> contextlib.AbstractContextManager[Proxy]:
    """Run HAProxy with `splice-auto`, which is not its default."""
    return haproxy(server_port, options="option splice-auto", name="haproxy+splice")


@contextlib.contextmanager
def nginx_stream(server_port: int, *, name: str = "nginx stream") -> Iterator[Proxy]:
    """Run nginx as a TCP proxy, as one process; its buffers are of the default size, 16 KiB."""
    binary, port = tools.path("nginx"), free_port()
    assert binary, "nginx is missing: make debian"
    with tempfile.TemporaryDirectory(prefix="lb-stream-") as directory:
        config, log = Path(directory) / "nginx.conf", Path(directory) / "log"
        config.write_text(_NGINX.format(directory=directory, port=port, server=server_port))
        with running([binary, "-c", str(config), "-e", str(log)], log=log) as process:
            wait_until(lambda: accepts(port) or process.poll() is not None, what="nginx accepts")
            assert process.poll() is None, log.read_text()
            yield Proxy(name=name, port=port, pid=process.pid)


@contextlib.contextmanager
def worker(server_port: int, *, package: Path | None = None, name: str = "appliance") -> Iterator[Proxy]:
    """Run one of our workers, from the copy of our package in the directory `package` if one is given."""
    port = free_port()
    with lone_worker(snapshot_of(port, server_port), package=package) as running_worker:
        wait_until(lambda: accepts(port), what="the worker accepts")
        yield Proxy(name=name, port=port, pid=running_worker.pid)


@contextlib.contextmanager
def several(
    server_port: int, *, count: int, package: Path | None = None, name: str = "appliance"
) -> Iterator[Proxy]:
    """Run so many of our workers on one listener, as their master would."""
    port = free_port()
    with workers(snapshot_of(port, server_port, count=count), package=package) as running_workers:
        wait_until(lambda: accepts(port), what="the workers accept")
        yield Proxy(name=name, port=port, pid=running_workers[0].pid, workers=tuple(running_workers))


def snapshot_of(port: int, server_port: int, *, count: int = 1) -> Snapshot:
    """Return what our workers work by: one frontend, one pool of one server."""
    return snapshot(
        groups=[
            group(
                workers=count,
                frontends=[
                    frontend(
                        binds=[bind(port)],
                        max_connections=CONNECTIONS,
                        timeout_client=3600.0,
                        keepalive=_KEEPALIVE,
                    )
                ],
            )
        ],
        pools=[pool(servers=[server(port=server_port)], timeout_server=3600.0, keepalive=_KEEPALIVE)],
    )
