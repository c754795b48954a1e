"""What a scrape of many servers costs: from the question over HTTP to the last byte, without any cache.

    python -m bench.scrape [--servers 1000] [--rounds 15]

`stats` serves in this process what two workers and `health` have on their boards. Two figures for each of its
pages: the processor time of `stats` alone, which a busy machine changes little, and the time that the client
waits. Both are the best of the rounds: what the machine does besides makes them longer, never shorter. `idle`
is with boards that say the same as at the last scrape, `busy` with traffic at every server since then.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import gevent
import structlog
from support.network.ports import free_port
from support.stats.haproxy_clients import get
from support.values import boards, snapshots

from appliance.model.paths import Paths
from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.snapshot import Stats, encode
from appliance.net.boards.board_writer import BoardWriter
from appliance.stats.figures import FRESH
from appliance.stats.service import StatsService
from appliance.wire.boards import health_board, worker_board

_PAGES: Final = ("/metrics", "/haproxy_stats;csv", "/api/v1/status")


def main() -> int:
    """Measure, and print a line for each page."""
    parser = argparse.ArgumentParser(prog="python -m bench.scrape", description=__doc__)
    parser.add_argument("--servers", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lb-scrape-") as directory:
        workers = _Workers(Path(directory), arguments.servers)
        port = _serve(workers)
        for page in _PAGES:
            for load, before in (("idle", lambda: None), ("busy", workers.work)):
                _measure(f"http://127.0.0.1:{port}{page}", load, before, arguments.rounds)
    return 0


def _measure(url: str, load: str, before: Callable[[], None], rounds: int) -> None:
    processor, waited, length = [], [], 0
    for _ in range(rounds):
        before()
        gevent.sleep(2 * FRESH)
        begun, used = time.perf_counter(), time.thread_time()
        length = len(gevent.get_hub().threadpool.apply(get, (url,))[1])  # a client of its own thread
        waited.append(time.perf_counter() - begun)
        processor.append(time.thread_time() - used)
    page = url.partition("/")[2].partition("/")[2].partition("/")[2]
    print(
        f"/{page:<22} {load}: {min(processor) * 1000:5.1f} ms of processor time, "
        f"{min(waited) * 1000:5.1f} ms until the client has {length / 1e6:.1f} MB",
        flush=True,
    )


class _Workers:
    """The boards of two workers, which write what they have served."""

    def __init__(self, directory: Path, count: int) -> None:
        self.names = [f"server-{number}" for number in range(count)]
        self.paths = Paths(runtime=directory, state=directory)
        self._boards = [BoardWriter(self.paths.worker_board("proxy-api", 1, index)) for index in range(2)]
        self._served = 9
        self.work()

    def work(self) -> None:
        """Serve a connection more at every server."""
        self._served += 1
        servers = tuple(boards.server_counters(name, total=self._served) for name in self.names)
        for index, board in enumerate(self._boards):
            worker = boards.worker(index=index, pid=os.getpid(), servers=servers)
            board.publish(worker_board.encode(worker), changed=True)


def _serve(workers: _Workers) -> int:
    names, paths, port = workers.names, workers.paths, free_port()
    pool = snapshots.pool("pool", servers=[snapshots.server(name, check=snapshots.check()) for name in names])
    stats = Stats(bind=Bind(host="127.0.0.1", port=port))
    accepted = replace(snapshots.snapshot(pools=[pool]), stats=stats)
    paths.accepted.write_bytes(encode(accepted))
    checked = health_board.encode(boards.health_board(*map(boards.health, names)))
    BoardWriter(paths.health_board).publish(checked, changed=True)
    service = StatsService(paths, structlog.get_logger())
    service.commit(service.prepare(accepted))
    return port


if __name__ == "__main__":
    raise SystemExit(main())
