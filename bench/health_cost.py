"""What checking costs: the processor time of `health`, and of HAProxy, with many servers at a short interval.

    python -m bench.health_cost [--servers 1000] [--interval 1.0] [--seconds 10]

The servers are addresses of 127.0.0.0/8 that one nginx answers for, plain and with TLS, so that there is a
connection for every check as in real life; `reuse` keeps connections. Figures are user and system time of the
process, in per cent of one processor, over seconds in which all servers are known and up. The ratio is that
of a check to the same one of HAProxy with one thread, measured just before; `reuse` is compared with
HAProxy's https.
"""

import argparse
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from support.peers import nginx
from support.processes.processes import cpu_seconds, resident, running
from support.processes.waiting import wait_until
from support.run import tools
from support.values import certificates, snapshots

from appliance.model.paths import Paths
from appliance.model.server_states import HealthVerdict
from appliance.model.snapshot.snapshot import Snapshot, encode
from appliance.net.boards.board_layout import BoardError
from appliance.net.boards.board_reader import BoardReader
from appliance.wire.boards.health_board import HealthBoard, decode

_REUSE: Final = "-reuse"
_HAPROXY: Final = """
global
  nbthread 1
  stats socket {socket} level admin
defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout check 5s
frontend none
  bind {socket}.unused
  default_backend checked
backend checked
  {asked}
  {default}
  {servers}
"""


def main() -> int:
    """Measure each type of check and print the table."""
    arguments = _arguments()
    print("| check | checks/s | HAProxy: per check | CPU of one core | per check | ratio | resident |")
    print("|---|---|---|---|---|---|---|")
    others: dict[str, float] = {}
    for kind in arguments.types:
        plain = kind.removesuffix(_REUSE)
        if plain not in others:
            others[plain] = _haproxy(plain, arguments)
        print(_row(kind, arguments, others[plain]), flush=True)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.health_cost", description=__doc__)
    parser.add_argument("--servers", type=int, default=1000)
    parser.add_argument("--interval", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--types", nargs="*", default=["tcp", "http", "https", f"https{_REUSE}"])
    return parser.parse_args()


def _row(kind: str, arguments: argparse.Namespace, other: float) -> str:
    with _servers(kind.removesuffix(_REUSE)) as (root, port):
        paths = Paths(config=root / "none.yaml", runtime=root, state=root)
        paths.accepted.write_bytes(encode(_snapshot(kind, port, arguments)))
        environment = {**os.environ, **paths.environment()}
        command = [sys.executable, "-m", "appliance.programs.health"]
        with running(command, log=root / "log", environment=environment) as program:
            return _measured(kind, program, paths, arguments, other)


@contextlib.contextmanager
def _servers(kind: str) -> Iterator[tuple[Path, int]]:
    """Run what answers checks; give a directory, and the port."""
    with tempfile.TemporaryDirectory(prefix="lb-cost-") as directory:
        root = Path(directory)
        issued = certificates.issue(root, "localhost", "127.0.0.1") if kind in ("tls", "https") else None
        with nginx.nginx(certificates=issued) as server:
            yield root, server.port


def _measured(
    kind: str, program: subprocess.Popen[bytes], paths: Paths, arguments: argparse.Namespace, other: float
) -> str:
    wait_until(lambda: _all_up(paths, arguments.servers), what="all servers are up", timeout=60.0)
    time.sleep(2 * arguments.interval)
    used, since = cpu_seconds(program.pid), time.monotonic()
    checks = _checked(paths, since_wall=time.time(), seconds=arguments.seconds)
    took = time.monotonic() - since
    share = (cpu_seconds(program.pid) - used) / took
    rate = arguments.servers / arguments.interval
    cells = [
        kind.replace(_REUSE, ", reuse"),
        f"{rate:.0f} ({checks} fresh)",
        f"{other * 1e6:.0f} us",
        f"{share:.1%}",
        f"{share / rate * 1e6:.0f} us",
        f"{share / rate / other:.2f}",
        f"{resident(program.pid) / 1e6:.0f} MB",
    ]
    return f"| {' | '.join(cells)} |"


def _haproxy(kind: str, arguments: argparse.Namespace) -> float:
    """Return the seconds of processor time of one check by HAProxy."""
    check = {"tcp": "", "http": "", "tls": "check-ssl verify none", "https": "check-ssl verify none"}[kind]
    asked = "option httpchk GET /readyz" if kind in ("http", "https") else ""
    with _servers(kind) as (root, port):
        lines = [
            f"server server-{index} {host}:{port}"
            for index, host in zip(range(arguments.servers), _addresses(), strict=False)
        ]
        default = f"default-server inter {arguments.interval * 1000:.0f}ms check {check}"
        text = _HAPROXY.format(
            socket=root / "h.sock", asked=asked, default=default, servers="\n  ".join(lines)
        )
        (root / "haproxy.cfg").write_text(text)
        command = [tools.path("haproxy") or "haproxy", "-db", "-f", str(root / "haproxy.cfg")]
        with running(command, log=root / "log") as program:
            wait_until(lambda: _up(root / "h.sock") == arguments.servers, what="all are up", timeout=60.0)
            time.sleep(2 * arguments.interval)
            used, since = cpu_seconds(program.pid), time.monotonic()
            time.sleep(arguments.seconds)
            share = (cpu_seconds(program.pid) - used) / (time.monotonic() - since)
    return share * arguments.interval / arguments.servers


def _up(path: Path) -> int:
    """Return how many servers HAProxy shows as up by a check that has ended."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"show stat -1 4 -1\n")
            answer = b"".join(iter(lambda: client.recv(65536), b""))
    except OSError:
        return 0
    return sum(b",UP," in line and (b"L7OK" in line or b"L4OK" in line) for line in answer.splitlines())


def _checked(paths: Paths, *, since_wall: float, seconds: float) -> int:
    """Wait, then return how many servers were checked within the last interval or so."""
    time.sleep(seconds)
    board = _board(paths)
    return sum(server.checked_at > since_wall + seconds - 1.5 for server in board.servers) if board else 0


def _all_up(paths: Paths, count: int) -> bool:
    board = _board(paths)
    return board is not None and [server.verdict for server in board.servers] == [HealthVerdict.UP] * count


def _board(paths: Paths) -> HealthBoard | None:
    try:
        with BoardReader(paths.health_board) as board:
            payload = board.read()
    except BoardError:
        return None
    return decode(payload) if payload else None


def _snapshot(kind: str, port: int, arguments: argparse.Namespace) -> Snapshot:
    check = snapshots.check(
        kind.removesuffix(_REUSE),
        reuse=kind.endswith(_REUSE),
        path="/readyz",
        interval=arguments.interval,
        fast_interval=arguments.interval,
        down_interval=arguments.interval,
        timeout=5.0,
    )
    servers = [
        snapshots.server(f"server-{index}", host=host, port=port, check=check)
        for index, host in zip(range(arguments.servers), _addresses(), strict=False)
    ]
    return snapshots.snapshot(pools=[snapshots.pool(servers=servers)])


def _addresses() -> Iterator[str]:
    return (f"127.0.{high}.{low}" for high in range(1, 256) for low in range(1, 255))


if __name__ == "__main__":
    sys.exit(main())
