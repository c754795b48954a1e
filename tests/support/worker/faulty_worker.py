"""The real worker, but for the fault that the file `fault` in the runtime directory asks for.

It holds `<generation> <fault>`: `crash` ends before it is ready, `silent` is never ready, `fragile` ends as
soon as it accepts, `brittle` ends when it is ready and before it accepts. Other generations are well.
"""

import os
import runpy
import sys
from contextlib import suppress
from pathlib import Path

import gevent

from appliance.model.paths import Paths
from appliance.model.worker_phases import WorkerPhase
from appliance.net.boards.board_layout import BoardError
from appliance.net.boards.board_reader import BoardReader
from appliance.wire.boards import worker_board
from appliance.wire.lines import worker_arguments
from appliance.wire.lines.worker_arguments import WorkerArguments

PHASES = {"brittle": WorkerPhase.READY, "fragile": WorkerPhase.ACCEPTING}


def _fault(orders: WorkerArguments, paths: Paths) -> str:
    with suppress(OSError):
        generation, fault = (paths.runtime / "fault").read_text().split()
        if int(generation) == orders.generation:
            return fault
    return ""


def _end_in(phase: WorkerPhase, board: Path) -> None:
    while True:
        gevent.sleep(0.01)
        with suppress(BoardError), BoardReader(board) as reader:
            if worker_board.decode(reader.read()).phase is phase:
                gevent.sleep(0.2)
                os._exit(9)


def _main() -> None:
    paths, orders = Paths.from_environment(os.environ), worker_arguments.decode(sys.argv[1:])
    fault = _fault(orders, paths)
    if fault == "crash":
        sys.exit(3)
    if fault == "silent":
        gevent.sleep(3600)
    if fault in PHASES:
        board = paths.worker_board(orders.program, orders.generation, orders.index)
        gevent.spawn(_end_in, PHASES[fault], board)
    runpy.run_module("appliance.programs.worker", run_name="__main__")


if __name__ == "__main__":
    _main()
