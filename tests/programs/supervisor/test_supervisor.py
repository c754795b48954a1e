"""supervisord as the appliance runs it, with small programs of our own behind it."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support.processes.log_lines import logged
from support.processes.processes import alive, end, kill, with_environment
from support.processes.waiting import wait_until
from support.values.snapshots import snapshot, virtual_router

from appliance.model.snapshot.snapshot import encode
from appliance.net.files.packaged import packaged
from appliance.net.supervision.supervisor_rpc import ProcessInfo, SupervisorClient, SupervisorUnavailable

pytestmark = pytest.mark.programs

_HEAD = """\
[supervisord]
nodaemon = true
logfile = /dev/null
logfile_maxbytes = 0
nocleanup = true
minfds = 256
minprocs = 20
pidfile = %(ENV_APPLIANCE_RUNTIME_DIR)s/supervisord.pid
[unix_http_server]
file = %(ENV_APPLIANCE_RUNTIME_DIR)s/supervisor.sock
chmod = 0600
[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
"""
_PROGRAM = """\
[program:{name}]
command = "{python}" "{script}" {name}
autorestart = true
startsecs = 1
startretries = 1000000000
stopwaitsecs = 60
killasgroup = true
stdout_logfile = /dev/stdout
stdout_logfile_maxbytes = 0
stderr_logfile = NONE
stderr_events_enabled = true
priority = {priority}
"""
_SAYS_UP = 'print(sys.argv[1], "up", flush=True)'
# What a program does when it is told to end is its file's name: ends, waits for the file `go`, or does not.
_ENDS = """\
import pathlib, signal, sys, time
def stop(*_):
    with open(pathlib.Path(__file__).with_name("order"), "a") as file:
        file.write(sys.argv[1] + "\\n")
    {then}
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
print(sys.argv[1], "up", flush=True)
while True:
    time.sleep(60)
"""
_WAITS = _ENDS.format(
    then='go = pathlib.Path(__file__).with_name("go")\n    while not go.exists(): time.sleep(0.01)'
)
_STUBBORN = """\
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
time.sleep(600)
"""
_LEAVES_AN_ORPHAN = """\
import pathlib, subprocess, sys, time
code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
orphan = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
pathlib.Path(__file__).with_name("orphan").write_text(str(orphan.pid))
time.sleep(600)
"""
_BREAKS = """\
raise SystemExit("no such thing as a listener")
"""


class Room:
    """A directory with programs in it, and a supervisord that runs them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log_file = root / "log"
        self.supervisor = SupervisorClient(root / "supervisor.sock")
        self._text = _HEAD
        self._say_up: list[str] = []
        self.process: subprocess.Popen[bytes] | None = None

    def program(self, name: str, code: str, *, priority: int = 10) -> None:
        """Add a program."""
        script = self.root / f"{name}.py"
        script.write_text(code)
        if _SAYS_UP in code:
            self._say_up.append(name)
        self._text += _PROGRAM.format(name=name, python=sys.executable, script=script, priority=priority)

    def start(self, *, stdout: int | None = None, environment: Mapping[str, str] | None = None) -> None:
        """Start supervisord and wait until every program runs, or at least has been tried."""
        configuration = self.root / "supervisord.conf"
        configuration.write_text(self._text)
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "appliance.programs.supervisor", "-n", "-c", str(configuration)],
                stdout=log if stdout is None else stdout,
                stderr=log,
                env={**os.environ, "APPLIANCE_RUNTIME_DIR": str(self.root), **(environment or {})},
                start_new_session=True,
            )
        wait_until(self._all_tried, what="every program was started")
        if stdout is None:
            wait_until(self._all_up, what="those that say so listen to signals")

    def info(self, name: str) -> ProcessInfo | None:
        """Return what supervisord says of a program, None while it says nothing."""
        try:
            return next((each for each in self.supervisor.processes() if each.name == name), None)
        except SupervisorUnavailable:
            return None

    def pid(self, name: str) -> int:
        """Return the process of a program, 0 while there is none."""
        info = self.info(name)
        return (info and info.pid) or 0

    def state(self, name: str) -> str:
        """Return the state of a program, "" while nothing answers."""
        info = self.info(name)
        return info.state if info else ""

    def signal(self, number: signal.Signals) -> None:
        """Send supervisord a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self) -> int:
        """Wait for supervisord's end, return its status."""
        assert self.process is not None
        return self.process.wait(30)

    def order(self) -> list[str]:
        """Return the programs in the order in which they were told to end."""
        path = self.root / "order"
        return path.read_text().split() if path.exists() else []

    def events(self, name: str) -> list[dict[str, object]]:
        """Return the events of that name in the log."""
        return logged(self.log_file, name)

    def close(self) -> None:
        """End everything."""
        if self.process is not None:
            end(self.process, patience=0.1)
        for pid in with_environment(f"APPLIANCE_RUNTIME_DIR={self.root}"):
            kill(pid)

    def _all_up(self) -> bool:
        said = self.log_file.read_text().splitlines()
        return all(f"{name} up" in said for name in self._say_up)

    def _all_tried(self) -> bool:
        try:
            return all(each.started_at for each in self.supervisor.processes())
        except SupervisorUnavailable:
            return False


def supervisorctl(room: Room, command: str) -> str:
    """Run supervisorctl with the packaged configuration, and return what it says."""
    return subprocess.run(
        [sys.executable, "-m", "supervisor.supervisorctl", "-c", str(packaged("supervisord.conf")), command],
        env={**os.environ, "APPLIANCE_RUNTIME_DIR": str(room.root)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.fixture
def room() -> Iterator[Room]:
    """Give a room in a short path, as sockets need, and clear it."""
    with tempfile.TemporaryDirectory(prefix="lb-") as directory:
        made = Room(Path(directory))
        yield made
        made.close()


@pytest.mark.promise("program", "supervisord")
def test_a_crashed_program_comes_back(room: Room):
    """A program that is killed is started again, and the log says how it ended."""
    room.program("steady", _ENDS.format(then=""))
    room.start()
    wait_until(lambda: room.state("steady") == "RUNNING", what="it runs")
    killed = room.pid("steady")
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: room.pid("steady") not in (0, killed), what="it is back")
    assert "SIGKILL" in str(room.events("program-exited")[0]["reason"])


def test_a_program_that_is_killed_again_and_again_comes_back(room: Room):
    """Also within its first second, before it counts as running: it is never given up."""
    room.program("steady", _ENDS.format(then=""))
    room.start()
    for _ in range(4):
        killed = wait_until(lambda: room.pid("steady"), what="it runs")
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda killed=killed: room.pid("steady") not in (0, killed), what="it is back")
    wait_until(lambda: room.state("steady") == "RUNNING", what="it stays")
    assert room.events("program-given-up") == []


def test_a_program_that_cannot_start_says_why(room: Room):
    """The last line that it wrote is supervisord's reason, and the other programs run."""
    room.program("broken", _BREAKS)
    room.program("steady", _ENDS.format(then=""))
    room.start()
    wait_until(lambda: room.state("steady") == "RUNNING", what="the other one runs")
    reason = wait_until(
        lambda: (info := room.info("broken")) and info.state == "BACKOFF" and info.spawn_error,
        what="a reason",
    )
    assert reason == "exit status 1: no such thing as a listener"


def test_stop_in_order(room: Room):
    """Higher priorities stop first, equal ones together, and the next only when all of those have ended."""
    room.program("first", _ENDS.format(then=""), priority=10)
    room.program("left", _ENDS.format(then=""), priority=30)
    room.program("right", _WAITS, priority=30)
    room.start()
    wait_until(lambda: "left up" in (log := room.log_file.read_text()) and "right up" in log, what="they run")
    room.signal(signal.SIGTERM)
    wait_until(lambda: len(room.order()) == 2, what="both of priority 30 were told")
    assert sorted(room.order()) == ["left", "right"]
    wait_until(lambda: room.events("program-stopped"), what="one of them has ended")
    wait_until(room.supervisor.shutting_down, what="supervisord has gone round its loop")
    assert len(room.order()) == 2
    (room.root / "go").touch()
    assert room.wait() == 0
    assert room.order()[2:] == ["first"]


def test_programs_have_the_time_of_the_accepted_configuration(room: Room):
    """A vrrp that does not end is killed when its longest hand-over of today is over."""
    accepted = snapshot(virtual_routers=[virtual_router(hand_over=0.2)])
    (room.root / "accepted.json").write_bytes(encode(accepted))
    room.program("vrrp", _STUBBORN)
    room.start()
    setting = f"APPLIANCE_RUNTIME_DIR={room.root}"
    wait_until(lambda: len(with_environment(setting)) > 2, what="it does not listen to TERM any more")
    room.signal(signal.SIGTERM)
    assert room.wait() == 0  # within the time that a room waits, which is half of what its file says


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_a_second_signal_kills_at_once(room: Room, second: signal.Signals):
    """A stubborn program and its children are gone at the second TERM, INT or QUIT; the status says so."""
    room.program("stubborn", _STUBBORN)
    room.start()
    wait_until(
        lambda: len(with_environment(f"APPLIANCE_RUNTIME_DIR={room.root}")) == 3, what="its child runs"
    )
    room.signal(signal.SIGTERM)
    wait_until(lambda: room.events("program-stopping"), what="it was told")

    def told_again() -> bool:
        room.signal(second)
        return room.process is not None and room.process.poll() is not None

    wait_until(told_again, what="supervisord has ended", pause=0.1)
    assert room.wait() == 1
    assert with_environment(f"APPLIANCE_RUNTIME_DIR={room.root}") == []


def test_a_signal_after_a_shutdown_by_command_kills_nothing(room: Room):
    """After `supervisorctl shutdown` the first TERM leaves programs their time; a second kills."""
    room.program("waiting", _WAITS)
    room.start()
    supervisorctl(room, "shutdown")
    wait_until(room.order, what="the program was told")
    room.signal(signal.SIGTERM)
    wait_until(lambda: room.events("stopping") or room.events("killing"), what="the signal is obeyed")
    assert room.events("killing") == []
    (room.root / "go").touch()
    assert room.wait() == 0


def test_orphans_end_with_it(room: Room):
    """The child of a killed program lives on, and ends with supervisord, even one that ignores TERM."""
    room.program("parent", _LEAVES_AN_ORPHAN)
    room.start()
    wait_until((room.root / "orphan").exists, what="there is a child")
    orphan = int(wait_until((room.root / "orphan").read_text, what="its number is written"))
    killed = room.pid("parent")
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: room.pid("parent") not in (0, killed), what="its parent is back")
    assert alive(orphan)
    room.signal(signal.SIGTERM)
    assert room.wait() == 0
    assert not alive(orphan)


def test_hang_up_is_for_reload(room: Room):
    """HUP reaches the program `reload`, and nothing is restarted."""
    code = 'import signal, time\nsignal.signal(signal.SIGHUP, lambda *_: print("hung up", flush=True))\n'
    room.program("reload", code + 'print("ready", flush=True)\nwhile True: time.sleep(60)\n')
    room.start()
    wait_until(lambda: "ready" in room.log_file.read_text(), what="the program runs")
    pid = room.pid("reload")
    room.signal(signal.SIGHUP)
    wait_until(lambda: "hung up" in room.log_file.read_text(), what="the program was told")
    assert room.pid("reload") == pid


def test_standard_output_may_be_a_socket(room: Room):
    """What programs print arrives where supervisord's output is a socket, as under journald."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        room.program("steady", _ENDS.format(then=""))
        room.start(stdout=theirs.fileno())
        ours.settimeout(15)
        received = b""
        while b"steady up" not in received:
            received += ours.recv(4096)


def test_left_overs_of_a_killed_supervisord_are_ended(room: Room):
    """The programs of one that was killed get TERM from the next, which runs its own."""
    code = "import socket\nlistener = socket.socket(socket.AF_UNIX)\n"
    code += "import pathlib\npath = pathlib.Path(__file__).with_name('steady.control')\n"
    code += "path.unlink(missing_ok=True)\nlistener.bind(str(path))\nlistener.listen()\n"
    room.program("steady", code + _ENDS.format(then=""))
    room.start()
    wait_until(lambda: "steady up" in room.log_file.read_text(), what="it runs")
    left_over = room.pid("steady")
    assert room.process is not None
    room.process.kill()
    room.process.wait()
    (room.root / "supervisor.sock").unlink()
    room.start()
    wait_until(lambda: not alive(left_over), what="the left-over has ended")
    wait_until(lambda: room.state("steady") == "RUNNING", what="its successor runs")


def test_supervisorctl_works_with_our_configuration(room: Room):
    """`supervisorctl -c config/supervisord.conf status` talks to it, given the environment."""
    room.program("steady", _ENDS.format(then=""))
    room.start()
    said = supervisorctl(room, "pid")
    assert room.process is not None
    assert said.strip() == str(room.process.pid)


_TELLS = """\
import os, pathlib, time
pathlib.Path(__file__).with_name("environment").write_text(" ".join(os.environ))
time.sleep(600)
"""


def test_systemd_is_told(room: Room):
    """READY when everything runs, WATCHDOG while the loop goes round, STOPPING at the end; by us alone."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(room.root / "notify"))
        listening.settimeout(15)
        room.program("steady", _TELLS)
        room.start(environment={"NOTIFY_SOCKET": str(room.root / "notify"), "WATCHDOG_USEC": "600000"})
        heard = {listening.recv(4096)}
        while heard != {b"READY=1", b"WATCHDOG=1"}:
            heard.add(listening.recv(4096))
        assert room.state("steady") == "RUNNING"
        assert {listening.recv(4096) for _ in range(3)} == {b"WATCHDOG=1"}
        told = (room.root / "environment").read_text().split()
        assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC"} & set(told)
        room.signal(signal.SIGTERM)
        wait_until(lambda: listening.recv(4096) == b"STOPPING=1", what="the end is told")
        assert room.wait() == 0


def test_systemd_is_not_told_of_a_soft_stop(room: Room):
    """What says STOPPING is killed after TimeoutStopSec: a soft stop takes the time that it takes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(room.root / "notify"))
        listening.settimeout(15)
        room.program("steady", _TELLS)
        room.start(environment={"NOTIFY_SOCKET": str(room.root / "notify")})
        assert listening.recv(4096) == b"READY=1"
        room.signal(signal.SIGUSR1)
        assert room.wait() == 0
        listening.settimeout(0)
        with pytest.raises(BlockingIOError):
            listening.recv(4096)


def test_a_supervisord_that_hangs_tells_systemd_nothing(room: Room):
    """So that it is ended, and the appliance started again."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(room.root / "notify"))
        listening.settimeout(3)
        room.program("steady", _TELLS)
        room.start(environment={"NOTIFY_SOCKET": str(room.root / "notify"), "WATCHDOG_USEC": "600000"})
        wait_until(lambda: listening.recv(4096) == b"READY=1", what="the start is over")
        room.signal(signal.SIGSTOP)
        said: list[bytes] = []
        with contextlib.suppress(TimeoutError):
            while len(said) < 10:  # what it said before is still to be read
                said.append(listening.recv(4096))
        assert len(said) < 10
        room.signal(signal.SIGCONT)
        assert listening.recv(4096) == b"WATCHDOG=1"
