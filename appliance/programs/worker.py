"""Starts a worker, and ends when it has drained."""

import gc
import os
import signal
import sys

import gevent

from appliance.model.paths import Paths
from appliance.net.control.control_server import ControlServer
from appliance.net.files import snapshots
from appliance.net.logging.line_limiter import limiter
from appliance.net.process.collection import no_collection
from appliance.net.process.signals import survive
from appliance.wire.lines import worker_arguments
from appliance.wire.lines.control import ControlError
from appliance.worker.commands import commands
from appliance.worker.worker import Worker, worker_log


def main() -> int:
    """Run a worker until it has drained; return the exit status."""
    survive(signal.SIGUSR1, signal.SIGUSR2)
    paths = Paths.from_environment(os.environ)
    arguments = worker_arguments.decode(sys.argv[1:])
    try:
        snapshot = snapshots.proposed(paths, arguments.snapshot)
    except ControlError as error:  # all copies lost: they are written again before the next try
        sys.exit(str(error))
    logger = worker_log(arguments, snapshot)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the master sends `stop`
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with no_collection():
        worker = Worker(arguments, snapshot, paths=paths, logger=logger)
    gevent.signal_handler(signal.SIGTERM, worker.stop)
    control = ControlServer(
        paths.worker_control(arguments.program, arguments.generation, arguments.index),
        commands(worker),
        on_error=lambda command, error: worker.log.error("command-failed", command=command, exc_info=error),
        for_readers={"status", "sessions"},
        turns=worker.turns,
    )
    _tune_collector()
    _write_ready_byte(worker)
    gevent.spawn(limiter().follow, gevent.sleep)
    worker.run()
    control.close()
    worker.close()
    return 0


def _tune_collector() -> None:
    """Exempt objects that live as long as the process from garbage collection.

    Sessions free themselves by reference counts (`Side.release` cuts their cycles), so a collection finds
    next to nothing, and each one stops all traffic of the worker.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def _write_ready_byte(worker: Worker) -> None:
    """Report this worker as ready to the master; without a master it would never be ordered to accept."""
    try:
        os.write(worker.arguments.ready_fd, b"R")
    except BrokenPipeError:
        worker.log.warning("master-gone")
        worker.stop()
    os.close(worker.arguments.ready_fd)


if __name__ == "__main__":
    # Not sys.exit: all is closed by now, and the interpreter would spend long on freeing the objects of a
    # worker with many sessions, while the next reload waits for its exit.
    os._exit(main())
