"""What a scrape of many servers costs: from the question over HTTP to the last byte, without any cache.

    python -m bench.scrape [--servers 1000] [--rounds 7]

`stats` serves in this process what two workers and `health` have on their boards. The time is the best of the
rounds: what the machine does besides makes it longer, never shorter.
"""

import argparse
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import gevent
import structlog
from support.network.ports import free_port
from support.peers.haproxy_clients import get
from support.values import boards, snapshots

from appliance.model.paths import Paths
from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.snapshot import encode
from appliance.model.snapshot.stats import Stats
from appliance.net.boards.board_writer import BoardWriter
from appliance.stats.figures import FRESH
from appliance.stats.service import StatsService
from appliance.wire.boards import health_board, worker_board


def main() -> int:
    """Measure, and print one line."""
    parser = argparse.ArgumentParser(prog="python -m bench.scrape", description=__doc__)
    parser.add_argument("--servers", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lb-scrape-") as directory:
        port = _serve(Path(directory), arguments.servers)
        times, length = [], 0
        for _ in range(arguments.rounds):
            gevent.sleep(2 * FRESH)
            begun = time.perf_counter()
            url = f"http://127.0.0.1:{port}/metrics"
            length = len(gevent.get_hub().threadpool.apply(get, (url,))[1])  # a client of its own thread
            times.append(time.perf_counter() - begun)
    print(f"{arguments.servers} servers: {min(times) * 1000:.0f} ms for {length / 1e6:.1f} MB")
    return 0


def _serve(directory: Path, count: int) -> int:
    names = [f"server-{number}" for number in range(count)]
    paths, port = Paths(runtime=directory, state=directory), free_port()
    pool = snapshots.pool("pool", servers=[snapshots.server(name, check=snapshots.check()) for name in names])
    stats = Stats(bind=Bind(host="127.0.0.1", port=port))
    accepted = replace(snapshots.snapshot(pools=[pool]), stats=stats)
    paths.accepted.write_bytes(encode(accepted))
    checked = health_board.encode(boards.health_board(*map(boards.health, names)))
    BoardWriter(paths.health_board).publish(checked, changed=True)
    servers = tuple(boards.server_counters(name, total=9) for name in names)
    for index in range(2):
        worker = boards.worker(index=index, pid=os.getpid(), servers=servers)
        board = BoardWriter(paths.worker_board("proxy-api", 1, index))
        board.publish(worker_board.encode(worker), changed=True)
    service = StatsService(paths, structlog.get_logger())
    service.commit(service.prepare(accepted))
    return port


if __name__ == "__main__":
    raise SystemExit(main())
