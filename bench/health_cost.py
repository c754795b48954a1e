"""What checking costs: the processor time of `health` with many servers at a short interval.

    python -m bench.health_cost [--servers 1000] [--interval 1.0] [--seconds 10]

The servers are addresses of 127.0.0.0/8 that one nginx answers for, plain and with TLS, so that there is a
connection for every check as in real life. Figures are user and system time of the health
process, in per cent of one processor, over seconds in which all servers are known and up.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from support.peers import nginx
from support.processes.processes import cpu_seconds, resident, running
from support.processes.waiting import wait_until
from support.values import certificates, snapshots

from appliance.model.paths import Paths
from appliance.model.server_states import HealthVerdict
from appliance.model.snapshot.snapshot import Snapshot, encode
from appliance.net.boards.board_layout import BoardError
from appliance.net.boards.board_reader import BoardReader
from appliance.wire.boards.health_board import HealthBoard, decode


def main() -> int:
    """Measure each type of check and print the table."""
    arguments = _arguments()
    print("| check | servers | interval | checks/s | CPU of one core | per check | resident |")
    print("|---|---|---|---|---|---|---|")
    for kind in arguments.types:
        print(_row(kind, arguments), flush=True)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.health_cost", description=__doc__)
    parser.add_argument("--servers", type=int, default=1000)
    parser.add_argument("--interval", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--types", nargs="*", default=["tcp", "http", "https"])
    return parser.parse_args()


def _row(kind: str, arguments: argparse.Namespace) -> str:
    with tempfile.TemporaryDirectory(prefix="lb-cost-") as directory:
        root = Path(directory)
        issued = certificates.issue(root, "localhost", "127.0.0.1") if kind in ("tls", "https") else None
        paths = Paths(config=root / "none.yaml", runtime=root, state=root)
        with nginx.nginx(certificates=issued) as server:
            paths.accepted.write_bytes(encode(_snapshot(kind, server.port, arguments)))
            environment = {**os.environ, **paths.environment()}
            command = [sys.executable, "-m", "appliance.programs.health"]
            with running(command, log=root / "log", environment=environment) as program:
                return _measured(kind, program, paths, arguments)


def _measured(
    kind: str, program: subprocess.Popen[bytes], paths: Paths, arguments: argparse.Namespace
) -> str:
    wait_until(lambda: _all_up(paths, arguments.servers), what="all servers are up", timeout=60.0)
    time.sleep(2 * arguments.interval)
    used, since = cpu_seconds(program.pid), time.monotonic()
    checks = _checked(paths, since_wall=time.time(), seconds=arguments.seconds)
    took = time.monotonic() - since
    share = (cpu_seconds(program.pid) - used) / took
    rate = arguments.servers / arguments.interval
    cells = [
        kind,
        f"{arguments.servers}",
        f"{arguments.interval:g} s",
        f"{rate:.0f} ({checks} fresh)",
        f"{share:.1%}",
        f"{share / rate * 1e6:.0f} us",
        f"{resident(program.pid) / 1e6:.0f} MB",
    ]
    return f"| {' | '.join(cells)} |"


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
        kind,
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
