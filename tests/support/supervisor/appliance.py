"""The whole appliance under test: `appliance run` in its own directory, asked over its real sockets."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import yaml
from support.processes.log_lines import logged
from support.processes.processes import alive, command_line, end, kill, parent, with_environment
from support.processes.waiting import patient, wait_until
from support.supervisor import warm_command

from appliance.core.status.assessment import assess
from appliance.model.paths import Paths
from appliance.net.observing.observation import observe

_START = 30.0
_STOP = 30.0
_ANSWER = 5.0
_COMMAND = Path(sys.executable).parent / "appliance"

_PROGRAMS = (("pools", "health"), ("virtual_ips", "vrrp"), ("stats", "stats"))

Values = dict[str, "object"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One living worker, as its control socket describes it."""

    program: str
    generation: int
    index: int
    pid: int
    phase: str
    sessions: int
    snapshot: int
    drain_deadline: float


class Appliance:
    """A running appliance. At the end of its context nothing of it may be left."""

    def __init__(self, config: Mapping[str, object]) -> None:
        # Socket names have to fit into 107 bytes, pytest's own directories do not.
        self._directory = tempfile.TemporaryDirectory(prefix="lb-")
        root = Path(self._directory.name)
        self.paths = Paths(config=root / "appliance.yaml", runtime=root / "run", state=root / "state")
        self.log_file = root / "log"
        self.config = dict(config)
        self.write(self.config)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.stop(patience=_STOP)
            left = self._kill_left_overs()
            sockets = sorted(path.name for path in self.paths.runtime.glob("*.control"))
        finally:
            if kind is not None:
                sys.stderr.write(f"--- last lines of the appliance's log\n{self.log()[-8000:]}\n")
            for path in (self.paths.runtime, self.paths.state):
                if path.is_mount():
                    subprocess.run(["umount", "--lazy", path], check=True)
            self._directory.cleanup()
        if kind is None:
            assert not left, f"left behind: {left}"
            assert not sockets, f"left behind: {sockets}"

    @property
    def pid(self) -> int:
        """Process id of supervisord."""
        return self.process.pid

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        """The supervisord that is in charge; another one where it was taken over."""
        assert self._process is not None
        return self._process

    @process.setter
    def process(self, successor: "subprocess.Popen[bytes]") -> None:
        self._process = successor

    @property
    def environment(self) -> dict[str, str]:
        """The environment that the appliance, and commands to it, run with."""
        return {**os.environ, **self.paths.environment()}

    def write(self, config: Mapping[str, object]) -> None:
        """Write the operator's file."""
        self.paths.config.write_text(yaml.safe_dump(dict(config), sort_keys=False))

    def start(self, *, through: Sequence[str] = ()) -> None:
        """Start, and return when every program answers and every proxy accepts.

        `through` is a command that takes a command.
        """
        self.launch(through=through)
        wait_until(
            lambda: self.is_whole() or not self.is_running(), what="the appliance accepts", timeout=_START
        )
        assert self.is_running(), f"the appliance ended:\n{self.log()}"

    def launch(self, *, through: Sequence[str] = ()) -> None:
        """Start, and do not wait."""
        with self.log_file.open("ab") as output:
            self._process = subprocess.Popen(
                [*through, _COMMAND, "run"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self.environment,
                start_new_session=True,
            )

    def stop(self, *, patience: float) -> int:
        """Send TERM, KILL after `patience` seconds, return the exit status."""
        assert self._process is not None
        end(self._process, patience=patient(patience))
        return self._process.wait()

    def crash(self) -> None:
        """KILL supervisord and nothing else, start another one, and do not wait."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self.launch()

    def terminate(self) -> None:
        """Send TERM and do not wait."""
        self.signal(signal.SIGTERM)

    def signal(self, number: signal.Signals, *, pid: int | None = None) -> None:
        """Send a signal to supervisord, or to a process of ours, and do not wait."""
        assert self._process is not None
        if pid is None:
            self._process.send_signal(number)
        else:
            os.kill(pid, number)

    def wait(self, *, patience: float) -> int:
        """Return the exit status, of what ends by itself."""
        assert self._process is not None
        return self._process.wait(patient(patience))

    def remove_sockets(self) -> None:
        """Forget the control sockets of programs that were killed, which is no fault of theirs."""
        for path in self.paths.runtime.glob("*.control"):
            path.unlink()

    def is_running(self) -> bool:
        """Return whether supervisord lives."""
        return self._process is not None and self._process.poll() is None

    def command(self, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        """Run the operator's command."""
        done = warm_command.run(arguments, self.environment, timeout=patient(60))
        assert not check or done.returncode == 0, (
            f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        )
        return done

    def supervisorctl(self, *arguments: str) -> str:
        """Run supervisorctl against the appliance's supervisord, return what it says."""
        command = [_COMMAND.with_name("supervisorctl"), "-s", f"unix://{self.paths.supervisor_socket}"]
        done = subprocess.run(
            [*command, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=patient(60),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def status(self) -> Values:
        """Return what `appliance status --json` prints, whether all is well or not.

        By the command's own functions, without its process: tests ask again and again until something holds.
        On a loaded machine a program that is well may answer late.
        """
        found = observe(self.paths, timeout=_ANSWER)
        values: Values = json.loads(assess(found, time.time()).json())
        return values

    def reload(self, config: Mapping[str, object] | None = None, *, timeout: float = 60.0) -> Values:
        """Write `config`, send the line `reload`, and return the answer."""
        if config is not None:
            self.config = dict(config)
            self.write(self.config)
        with self.reload_connection(timeout=timeout) as connection:
            connection.sendall(b"reload\n")
            answer: Values = json.loads(_line(connection))
        return answer

    def reload_connection(self, *, timeout: float = 60.0) -> socket.socket:
        """Return a connection to the reload socket."""
        return _connect(self.paths.reload_socket, timeout)

    def ask(self, program: str, command: str, **values: object) -> Values:
        """Ask a program over its control socket."""
        return ask(self.paths.control(program), command, **values)

    def program_pid(self, program: str) -> int | None:
        """Return the process id of a program that answers, else None."""
        with contextlib.suppress(OSError, ValueError):
            return int(str(self.ask(program, "status")["pid"]))
        return None

    def kill(self, program: str) -> int:
        """KILL a program, wait for its end, and return its process id."""
        pid = wait_until(lambda: self.program_pid(program), what=f"{program} answers")
        kill(pid)
        wait_until(lambda: not alive(pid), what=f"{program} has ended")  # until then its sockets take bytes
        return pid

    def wait_for_restart(self, program: str, old_pid: int) -> int:
        """Return the process id of the program's successor."""
        return wait_until(
            lambda: pid if (pid := self.program_pid(program)) not in (None, old_pid) else 0,
            what=f"{program} is back",
        )

    def workers(self, program: str = "proxy-api", *, generation: int | str = "*") -> list[Worker]:
        """Return the living workers of a program, of all generations where none is given.

        Each is asked: one that a test has stopped costs the whole time-out.
        """
        pattern = f"worker-{program}-{generation}-*.control"
        found = (_worker(path) for path in sorted(self.paths.runtime.glob(pattern)))
        return [worker for worker in found if worker is not None]

    def accepted(self) -> int:
        """Return the number of the accepted snapshot."""
        return int(json.loads(self.paths.accepted.read_text())["number"])

    def accepting(self, program: str = "proxy-api") -> list[Worker]:
        """Return the workers that accept connections."""
        return [worker for worker in self.workers(program) if worker.phase == "accepting"]

    def generation(self, program: str = "proxy-api") -> int:
        """Return the accepting generation, 0 when there is none."""
        return max((worker.generation for worker in self.accepting(program)), default=0)

    def processes(self) -> list[int]:
        """Return every process that was started with this appliance's runtime directory."""
        return with_environment(f"APPLIANCE_RUNTIME_DIR={self.paths.runtime}")

    def log(self) -> str:
        """Return everything logged so far."""
        return self.log_file.read_text(errors="replace")

    def forget_log(self) -> None:
        """Empty the log, to which everybody appends: what is found in it later is logged later."""
        os.truncate(self.log_file, 0)

    def events(self, name: str) -> list[Values]:
        """Return the logged events of that name."""
        return logged(self.log_file, name)

    def wait_for_event(self, name: str, matches: Callable[[Values], bool] = bool, **wait: float) -> Values:
        """Return the first event of that name for which `matches` holds."""
        return wait_until(
            lambda: next(filter(matches, self.events(name)), {}), what=f"event {name} is logged", **wait
        )

    def is_whole(self) -> bool:
        """Return whether every program of supervisord's own answers and every proxy accepts."""
        proxies = [f"proxy-{group}" for group in ("api", "ingress") if "proxy" in self._ways(group)]
        others = [each for section, each in _PROGRAMS if self.config.get(section)]
        others += ["forward"] if "kernel" in self._ways("api") | self._ways("ingress") else []
        # What a supervisord that was killed has left may still answer: only our children count.
        ours = (self.program_pid(program) for program in ("reload", *others, *proxies))
        return all(pid and parent(pid) == self.pid for pid in ours) and all(map(self.accepting, proxies))

    def _ways(self, group: str) -> set[object]:
        """Return who moves the bytes of a group's frontends."""
        section: Values = self.config.get(group) or {}  # type: ignore[assignment]  # JSON
        frontends: Mapping[str, Values] = section.get("frontends") or {}  # type: ignore[assignment]  # JSON
        return {each.get("forward", "proxy") for each in frontends.values()}

    def _kill_left_overs(self) -> list[str]:
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not self.processes(), what="every process has ended", timeout=5.0)
        left = [f"{pid} {command_line(pid)}" for pid in self.processes()]
        for pid in self.processes():
            if alive(pid):
                kill(pid)
        return left


def ask(path: Path, command: str, *, timeout: float = 30.0, **values: object) -> Values:
    """Ask one question on a control socket; raises OSError or ValueError when there is no answer."""
    with _connect(path, timeout) as connection:
        connection.sendall(json.dumps({"command": command, **values}).encode() + b"\n")
        answer: Values = json.loads(_line(connection))
    return answer


def _connect(path: Path, timeout: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(patient(timeout))
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection


def _line(connection: socket.socket) -> bytes:
    received = b""
    while not received.endswith(b"\n"):
        chunk = connection.recv(1 << 16)
        if not chunk:
            break
        received += chunk
    return received


def _worker(path: Path) -> Worker | None:
    try:
        values = ask(path, "status", timeout=5.0)
        return Worker(
            program=str(values["program"]),
            generation=int(str(values["generation"])),
            index=int(str(values["index"])),
            pid=int(str(values["pid"])),
            phase=str(values["phase"]),
            sessions=int(str(values["sessions"])),
            snapshot=int(str(values["snapshot"])),
            drain_deadline=float(str(values.get("drain_deadline") or 0)),
        )
    except (OSError, ValueError, KeyError):
        return None
