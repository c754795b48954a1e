"""The tracker as vrrp runs it: lines over a socket, real scripts, servers and processes."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.peers.hostile import SECURE, hostile
from support.processes.processes import alive, cpu_seconds, running
from support.processes.waiting import wait_until
from support.values import boards, certificates
from support.vrrp.tracks import track

from appliance.model.paths import Paths
from appliance.model.server_states import HealthVerdict as Health
from appliance.model.snapshot.virtual_router import Track, TrackKind
from appliance.net.boards.board_writer import BoardWriter
from appliance.wire.boards.health_board import encode as encode_board
from appliance.wire.lines.line_buffer import LineBuffer
from appliance.wire.lines.tracker_lines import (
    CommandEnded,
    Report,
    RunCommand,
    TrackVerdict,
    WatchTracks,
    WriteLine,
    decode_report,
    encode,
)

pytestmark = pytest.mark.programs

QUICK = 0.05
AGES = 600.0


class Tracker:
    """A running tracker, to which the test is vrrp."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self.reports: list[Report] = []
        self._lines = LineBuffer()
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(0)
        with theirs, (paths.runtime / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "appliance.programs.tracker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={**os.environ, **paths.environment()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def watch(self, *tracks: Track, router: str = "api") -> None:
        """Want these tracks of one router, and no others."""
        self.watch_all(*((router, each) for each in tracks))

    def watch_all(self, *tracks: tuple[str, Track]) -> None:
        """Want these tracks, and no others."""
        self.socket.sendall(encode(WatchTracks(tracks=tracks)))

    def run(self, *words: str, user: str | None = None, timeout: float = AGES) -> None:
        """Order a notify command."""
        self.socket.sendall(encode(RunCommand(router="api", words=words, user=user, timeout=timeout)))

    def told(self) -> list[Report]:
        """Return all that was reported so far."""
        try:
            while chunk := self.socket.recv(65536):
                self.reports += map(decode_report, self._lines.feed(chunk))
        except (BlockingIOError, ConnectionResetError):
            pass
        return self.reports

    def verdicts(self, name: str = "web", *, router: str = "api") -> list[TrackVerdict]:
        """Return what was said of a track so far."""
        return [
            each
            for each in self.told()
            if isinstance(each, TrackVerdict) and (each.router, each.track) == (router, name)
        ]

    def wait(self, name: str = "web", *, up: bool, router: str = "api") -> TrackVerdict:
        """Return the last verdict of a track once it is as wanted."""

        def last() -> TrackVerdict | None:
            said = self.verdicts(name, router=router)
            return said[-1] if said and said[-1].up is up else None

        found = wait_until(last, what=f"{name} {'up' if up else 'down'}; {self.log()}")
        assert found is not None
        return found

    def ran(self, count: int) -> list[str]:
        """Return the outcomes of commands once there are so many."""

        def outcomes() -> list[str]:
            found = [each.outcome for each in self.told() if isinstance(each, CommandEnded)]
            return found if len(found) >= count else []

        return wait_until(outcomes, what=f"{count} commands have ended; {self.log()}")

    def log(self) -> str:
        """Return what the tracker has written."""
        return (self.paths.runtime / "log").read_text()

    def end(self) -> int:
        """Close the socket, and return the tracker's exit status."""
        self.socket.close()
        return self.process.wait(15)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Directories of nobody else."""
    return Paths(runtime=tmp_path, state=tmp_path)


@pytest.fixture
def tracker(paths: Paths) -> Iterator[Tracker]:
    """Tracker that has said nothing and left nothing at the end."""
    subject = Tracker(paths)
    yield subject
    subject.end()
    assert "Traceback" not in subject.log()


def script(text: str, name: str = "web", **changes: object) -> Track:
    """Return the track of a shell's script, looked at often."""
    values = {"interval": QUICK, "timeout": 10.0, **changes}
    return track(name, target="/bin/sh", arguments=("-c", text), **values)


def number(path: Path) -> int:
    """Return the process id that a script has written to a file, once it has."""
    return int(wait_until(lambda: path.exists() and path.read_text().strip(), what=f"a number in {path}"))


def test_a_script_s_verdict_follows_what_it_tests(tracker: Tracker, tmp_path: Path):
    """Every change is said once, with the reason."""
    flag = tmp_path / "flag"
    tracker.watch(script(f"test -e {flag} || {{ echo no flag; exit 1; }}"))
    assert tracker.wait(up=False).detail == "exited 1: no flag"
    flag.touch()
    assert tracker.wait(up=True).detail == "exited 0"
    flag.unlink()
    tracker.wait(up=False)
    assert [each.up for each in tracker.verdicts()] == [False, True, False]
    assert tracker.verdicts()[-1].at <= time.monotonic()


def test_its_socket_may_be_its_standard_input(paths: Paths):
    """Then it needs no argument."""
    ours, theirs = socket.socketpair()
    words = [sys.executable, "-m", "appliance.programs.tracker"]
    with (
        ours,
        theirs,
        subprocess.Popen(words, stdin=theirs, env={**os.environ, **paths.environment()}) as process,
    ):
        theirs.close()
        ours.sendall(encode(WatchTracks(tracks=(("api", script("cat; exit 1")),))))
        ours.settimeout(15.0)
        report = decode_report(ours.recv(65536).splitlines()[0])
        assert isinstance(report, TrackVerdict)
        assert report.detail == "exited 1"
        ours.close()
        assert process.wait(15) == 0


@pytest.mark.promise("program", "tracker")
def test_every_kind_is_tracked(tracker: Tracker, tmp_path: Path):
    """One of each, all of them up, and those that cannot be asked down with the reason."""
    (tmp_path / "number").write_text("12")
    health = BoardWriter(tracker.paths.health_board)
    health.publish(encode_board(boards.health_board(boards.health(pool="masters"))), changed=True)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        tracker.watch(
            track("script"),
            track("tcp", kind=TrackKind.TCP, target=place),
            track("http", kind=TrackKind.HTTP, target=f"http://{place}/", timeout=0.1),
            track("process", kind=TrackKind.PROCESS, target=Path(sys.executable).resolve().name),
            track("file", kind=TrackKind.FILE, target=str(tmp_path / "number"), weight=1),
            track("pool", kind=TrackKind.POOL, target="masters"),
            track("program", kind=TrackKind.PROGRAM, target="proxy-api"),
            track("wrong", kind=TrackKind.HTTP, target="gopher://place/"),
            track("interface", kind=TrackKind.INTERFACE, target="lo"),
        )
        for name in ("script", "tcp", "file", "pool"):
            tracker.wait(name, up=True)
        assert tracker.wait("file", up=True).value == 12
        assert tracker.wait("http", up=False).detail == "no answer within 0.1 s"
        assert tracker.wait("program", up=False).detail == "no worker runs"
        assert tracker.wait("wrong", up=False).detail == "'gopher://place/' is no http or https URL"
    assert tracker.verdicts("interface") == []


def test_a_pool_s_change_is_seen_before_the_interval(tracker: Tracker):
    """The board is watched as workers watch it."""
    board = BoardWriter(tracker.paths.health_board)

    def says(verdict: Health) -> None:
        board.publish(
            encode_board(boards.health_board(boards.health(pool="masters", verdict=verdict))), changed=True
        )

    says(Health.UP)
    tracker.watch(track(kind=TrackKind.POOL, target="masters", interval=AGES))
    tracker.wait(up=True)
    says(Health.DOWN)
    tracker.wait(up=False)


@pytest.mark.promise("kernel", "the death of a process (pidfd)")
def test_a_process_s_death_is_seen_before_the_interval(tracker: Tracker, tmp_path: Path):
    """It is held by its pidfd."""
    program = tmp_path / f"zzz{os.getpid()}"
    program.symlink_to("/bin/sleep")
    with running([str(program), "600"], log=tmp_path / "log") as process:
        wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_text().startswith("zzz"), what="it runs")
        tracker.watch(track(kind=TrackKind.PROCESS, target=program.name, interval=AGES))
        tracker.wait(up=True)
        process.kill()
        tracker.wait(up=False)


def test_tracks_that_hang_delay_no_other(tracker: Tracker):
    """Many scripts hang, and one changes as if they were not there."""
    hanging = [script("sleep 600", f"hangs-{index}", timeout=AGES) for index in range(20)]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        hangs = track("http", kind=TrackKind.HTTP, target=f"http://127.0.0.1:{port}/", timeout=AGES)
        tracker.watch(*hanging, hangs, script("exit 0"))
        tracker.wait(up=True)
    assert all(not tracker.verdicts(each.name) for each in hanging)


def test_a_script_longer_than_its_interval_never_overlaps(tracker: Tracker, tmp_path: Path):
    """Runs follow one another."""
    out = tmp_path / "out"
    tracker.watch(script(f"echo begin >> {out}; sleep 0.15; echo end >> {out}", interval=0.01))
    wait_until(lambda: out.exists() and out.read_text().count("end") >= 4, what="four runs")
    words = out.read_text().split()
    assert set(words[::2]) == {"begin"}
    assert set(words[1::2]) == {"end"}


def test_an_unchanged_track_keeps_its_state(tracker: Tracker, tmp_path: Path):
    """A reload neither looks again at once nor forgets, and says again what is known."""
    out = tmp_path / "out"
    slow = script(f"echo run >> {out}", interval=AGES)
    tracker.watch(slow)
    tracker.wait(up=True)
    tracker.watch(slow, script("exit 0", "other"))
    tracker.wait("other", up=True)
    assert out.read_text() == "run\n"
    assert len(set(tracker.verdicts())) == 1
    tracker.watch(script(f"echo again >> {out}", interval=AGES))
    wait_until(lambda: out.read_text() == "run\nagain\n", what="the changed script runs")


def test_routers_share_what_they_track_alike(tracker: Tracker, tmp_path: Path):
    """The two families of one service run one script, and each is told; a new one hears what is known."""
    out = tmp_path / "out"
    shared = script(f"echo run >> {out}", interval=AGES)
    tracker.watch_all(("api", shared), ("api-6", shared))
    for router in ("api", "api-6"):
        tracker.wait(up=True, router=router)
    tracker.watch_all(("api-6", shared), ("late", shared))
    tracker.wait(up=True, router="late")
    assert out.read_text() == "run\n"


def test_the_processes_of_a_removed_track_are_killed(tracker: Tracker, tmp_path: Path):
    """Nothing of it runs on, children neither."""
    child = tmp_path / "child"
    tracker.watch(script(f"sleep 600 & echo $! > {child}; wait", timeout=AGES))
    pid = number(child)
    tracker.watch()
    wait_until(lambda: not alive(pid), what="the child is gone")


def test_the_end_of_the_socket_ends_it_with_all_its_scripts(tracker: Tracker, tmp_path: Path):
    """Vrrp has gone."""
    child = tmp_path / "child"
    tracker.watch(script(f"trap '' TERM; sleep 600 & echo $! > {child}; wait", timeout=AGES))
    pid = number(child)
    assert tracker.end() == 0
    wait_until(lambda: not alive(pid), what="the child is gone")


def test_a_killed_tracker_takes_its_scripts_along(tracker: Tracker, tmp_path: Path):
    """The kernel sees to it."""
    child = tmp_path / "child"
    tracker.watch(script(f"echo $$ > {child}; exec sleep 600", timeout=AGES))
    pid = number(child)
    tracker.process.kill()
    wait_until(lambda: not alive(pid), what="the script is gone")


def test_the_next_tracker_ends_what_a_killed_one_left(paths: Paths, tmp_path: Path):
    """Children of scripts do not die with it; a daemon in a group of its own is nobody's business."""
    child, daemon = tmp_path / "child", tmp_path / "daemon"
    first = Tracker(paths)
    text = f"setsid sh -c 'echo $$ > {daemon}; exec sleep 60' & sleep 600 & echo $! > {child}; wait"
    first.watch(script(text, timeout=AGES))
    pids = number(child), number(daemon)
    first.process.kill()
    first.process.wait()
    assert alive(pids[0])
    second = Tracker(paths)
    wait_until(lambda: not alive(pids[0]), what="the child is gone")
    wait_until(lambda: "scripts-left" in second.log(), what="it is told")
    assert alive(pids[1])
    os.kill(pids[1], signal.SIGKILL)
    first.socket.close()
    second.end()


def test_scripts_do_not_hold_the_socket(tracker: Tracker, tmp_path: Path):
    """Else vrrp would not hear of the tracker's end."""
    out = tmp_path / "out"
    tracker.watch(script(f"ls -l /proc/$$/fd > {out}.new; mv {out}.new {out}", interval=AGES))
    tracker.wait(up=True)
    assert "socket" not in out.read_text()


@pytest.mark.needs(root=True)
def test_scripts_run_as_their_user(tracker: Tracker):
    """What checks does not need root's rights."""
    tracker.watch(script("id -un; exit 1", user="nobody", interval=AGES))
    assert tracker.wait(up=False).detail == "exited 1: nobody"


@pytest.mark.needs(root=True)
def test_scripts_are_ordinary_processes(paths: Paths):
    """The real-time priority that vrrp may have is handed down to nobody."""
    before = os.sched_getscheduler(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        pytest.skip("this machine permits no real-time scheduling")
    try:
        subject = Tracker(paths)
    finally:
        os.sched_setscheduler(0, before, os.sched_param(0))
    asks = (sys.executable, "-c", "import os, sys; sys.exit(os.sched_getscheduler(0))")
    subject.watch(track(target=asks[0], arguments=asks[1:], timeout=10.0, interval=AGES))
    assert subject.wait(up=True).detail == "exited 0"
    assert os.sched_getscheduler(subject.process.pid) == os.SCHED_OTHER
    subject.end()


def test_notify_commands_run_in_order_and_are_reported(tracker: Tracker, tmp_path: Path):
    """Each with what came of it."""
    out = tmp_path / "out"
    tracker.run("sh", "-c", f'sleep 0.2; echo "$@" >> {out}', "sh", "INSTANCE", "api", "MASTER", "100")
    tracker.run("sh", "-c", f'echo "$@" >> {out}', "sh", "INSTANCE", "api", "STOP", "100")
    tracker.run("/no/such/command")
    assert tracker.ran(3) == [
        "exited 0",
        "exited 0",
        "cannot be run: /no/such/command: No such file or directory",
    ]
    assert out.read_text() == "INSTANCE api MASTER 100\nINSTANCE api STOP 100\n"


def test_commands_that_were_ordered_are_finished(tracker: Tracker, tmp_path: Path):
    """The news of a stop is ordered last, and vrrp does not wait for it."""
    out = tmp_path / "out"
    tracker.run("sh", "-c", f"sleep 0.2; echo backup >> {out}")
    tracker.run("sh", "-c", f"echo stop >> {out}")
    assert tracker.end() == 0
    assert out.read_text() == "backup\nstop\n"


def test_signals_end_it_only_when_it_is_alone(tracker: Tracker, tmp_path: Path):
    """A terminal or systemd signals all at once: vrrp has still to leave, and to say so."""
    child = tmp_path / "child"
    tracker.run("true")
    tracker.ran(1)
    for number_ in (signal.SIGTERM, signal.SIGINT):
        tracker.process.send_signal(number_)
    tracker.run("sh", "-c", f"echo $$ > {child}; exec sleep 600")
    pid = number(child)
    tracker.socket.close()

    def ended() -> bool:
        tracker.process.send_signal(signal.SIGTERM)
        return tracker.process.poll() is not None

    wait_until(ended, what="it ends")
    wait_until(lambda: not alive(pid), what="the command is gone")


def test_a_line_that_is_none_ends_it(tracker: Tracker):
    """Vrrp starts a new one; nothing of what the line meant can be guessed."""
    tracker.socket.sendall(b"{}\n")
    assert tracker.process.wait(15) == 65
    assert "tracker-line" in tracker.log()


def test_a_vrrp_that_does_not_read_costs_no_memory_and_misses_nothing_that_counts(tracker: Tracker):
    """What is true now takes the place of what was true."""
    scripts = [script("date +%N; exit 1", f"track-{index}", interval=0.01) for index in range(5)]
    tracker.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    tracker.watch(*scripts)
    wait_until(lambda: cpu_seconds(tracker.process.pid) > 0.5, what="it has worked for a while")
    tracker.watch(script("exit 0"))
    tracker.wait(up=True)


def test_garbage_of_a_script_is_carried(tracker: Tracker):
    """Whatever bytes it writes, the line is one that vrrp can read."""
    tracker.watch(script("head -c 3000 /dev/urandom; exit 1", interval=AGES))
    assert tracker.wait(up=False).detail.isprintable()


@pytest.mark.slow("real timers")
def test_servers_that_never_stop_talking_starve_no_other_track(tracker: Tracker, tmp_path: Path):
    """A flag that goes is noticed in its usual time beside URLs of the worst kind."""
    files = certificates.issue(tmp_path, "127.0.0.1")
    flag = tmp_path / "flag"
    flag.touch()
    with ExitStack() as stack:
        bad = [
            track(
                kind,
                kind=TrackKind.HTTP,
                target=f"https://127.0.0.1:{stack.enter_context(hostile(kind, files))}/",
                interval=QUICK,
                timeout=5.0,
                expect=((200, 399),),
            )
            for kind in SECURE
        ]
        tracker.watch(script(f"test -e {flag}"), *bad)
        tracker.wait(up=True)
        for kind in SECURE:
            tracker.wait(kind, up=False)
        flag.unlink()
        gone = time.monotonic()
        tracker.wait(up=False)
        assert time.monotonic() - gone < 5.0


def test_a_line_is_written_into_a_fifo(tracker: Tracker):
    """What vrrp orders is there for a reader that comes later."""
    fifo = tracker.paths.runtime / "fifo"
    tracker.socket.sendall(encode(WriteLine(router="api", path=str(fifo), line="first")))
    wait_until(fifo.exists, what="the FIFO is made")
    with fifo.open() as reader:
        assert reader.readline() == "first\n"
