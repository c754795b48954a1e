"""One proxy master without supervisord, reload and health, which the test plays instead."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from support.processes.processes import end, kill, with_environment
from support.processes.waiting import wait_until
from support.supervisor.appliance import Values, ask
from support.worker.lone_worker import up

from appliance.model.paths import Paths
from appliance.model.snapshot import snapshot as model
from appliance.net.boards.board_writer import BoardWriter
from appliance.wire.boards import health_board
from appliance.wire.boards.health_board import HealthBoard

_TESTS = Path(__file__).parents[2]  # where `support` is, for workers that are faulty on purpose


class LoneProxy:
    """The program `proxy-api`; at the end of its context everything it started is killed."""

    program = "proxy-api"

    def __init__(self, snapshot: model.Snapshot) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="lb-proxy-")
        root = Path(self._directory.name)
        self.paths = Paths(config=root / "appliance.yaml", runtime=root, state=root)
        self.paths.snapshot(0).parent.mkdir()
        self.log_file = root / "log"
        self._health = BoardWriter(self.paths.health_board)
        self._processes: list[subprocess.Popen[bytes]] = []
        self.accept(snapshot)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for process in self._processes:
            end(process, patience=0.1)
        for pid in with_environment(f"APPLIANCE_RUNTIME_DIR={self.paths.runtime}"):
            kill(pid)
        if kind is not None:
            sys.stderr.write(f"--- log of the proxy\n{self.log()[-8000:]}\n")
        log = self.log()
        self._health.close()
        self._directory.cleanup()
        assert kind or "rollout-event-unexpected" not in log, "an event that the rollout's tables do not have"

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        """The master that was started last."""
        return self._processes[-1]

    def log(self) -> str:
        """Return what master and workers have logged."""
        return self.log_file.read_text() if self.log_file.exists() else ""

    def propose(self, snapshot: model.Snapshot) -> None:
        """Write a snapshot by its number, and let every server of it be up."""
        self.paths.snapshot(snapshot.number).write_bytes(model.encode(snapshot))
        servers = tuple(up(pool, server) for pool in snapshot.pools for server in pool.servers)
        board = HealthBoard(snapshot=snapshot.number, pid=0, written_at=time.time(), servers=servers)
        self._health.publish(health_board.encode(board), changed=True)

    def accept(self, snapshot: model.Snapshot) -> None:
        """Make a snapshot the accepted one, for masters that start."""
        self.propose(snapshot)
        self.paths.accepted.write_bytes(model.encode(snapshot))

    def start(self, *, impatient: bool = False, **timing: float) -> None:
        """Start a master; `impatient` has short patience and workers that can be told to fail.

        `timing` is what is to be otherwise of that patience.
        """
        with self.log_file.open("ab") as log:
            program = ["appliance.programs.proxy", "api"]
            if impatient:
                program = ["support.proxy.impatient_master", "api", json.dumps(timing)]
            process = subprocess.Popen(
                [sys.executable, "-m", *program],
                env={**os.environ, **self.paths.environment(), "PYTHONPATH": str(_TESTS)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._processes.append(process)

    def run(self, *, impatient: bool = False, **timing: float) -> None:
        """Start a master, and return when what it obeys is served."""
        self.start(impatient=impatient, **timing)
        wait_until(self._serves, what="the new master serves", timeout=60.0)

    def _serves(self) -> bool:
        status = self.status()
        ours = status.get("pid") == self.process.pid and status["snapshot"] is not None
        return ours and self.phase() == "accepting"

    def fault(self, generation: int, fault: str) -> None:
        """Let the workers of a generation fail; see `support.worker.faulty_worker`."""
        (self.paths.runtime / "fault").write_text(f"{generation} {fault}")

    def ask(self, command: str, **values: object) -> Values:
        """Ask the master."""
        return ask(self.paths.control(self.program), command, **values)

    def status(self) -> Values:
        """Return the master's status, empty while it does not answer."""
        with suppress(OSError, ValueError):
            return self.ask("status")
        return {}

    def reload(self, snapshot: model.Snapshot) -> Values:
        """Prepare and commit a snapshot as `reload` does, and return the commit's answer."""
        self.propose(snapshot)
        prepared = self.ask("prepare", snapshot=snapshot.number)
        assert prepared["ok"], prepared
        self.paths.accepted.write_bytes(model.encode(snapshot))
        committed = self.ask("commit", snapshot=snapshot.number)
        assert committed["ok"], committed
        return committed

    def generations(self) -> dict[int, Values]:
        """Return the generations in the master's status, by number."""
        generations = self.status().get("generations", [])
        assert isinstance(generations, list)
        return {each["generation"]: each for each in generations}

    def generation(self) -> int:
        """Return the newest generation with a worker that accepts, 0 without one."""
        return max(
            (int(str(w["generation"])) for w in self.workers() if w["phase"] == "accepting"), default=0
        )

    def accepting(self) -> set[object]:
        """Return the generations whose workers say that they accept."""
        return {each["generation"] for each in self.workers() if each["phase"] == "accepting"}

    def phase(self, generation: int | None = None) -> str:
        """Return the phase of a generation, by default of the one in service; "" for none."""
        number = self.status().get("generation") if generation is None else generation
        return str(self.generations().get(number, {}).get("phase", ""))  # type: ignore[call-overload]  # None is no key

    def workers(self) -> list[Values]:
        """Return the status of every living worker, asked at its own socket."""
        found = []
        for path in sorted(self.paths.runtime.glob("worker-*.control")):
            with suppress(OSError, ValueError):
                found.append(ask(path, "status"))
        return found

    def kill(self) -> None:
        """KILL the master."""
        self.process.kill()
        self.process.wait()

    def terminate(self, *, number: signal.Signals = signal.SIGTERM) -> None:
        """Signal the master."""
        self.process.send_signal(number)

    def wait(self, *, timeout: float = 15.0) -> int:
        """Return the master's exit status."""
        return self.process.wait(timeout)
