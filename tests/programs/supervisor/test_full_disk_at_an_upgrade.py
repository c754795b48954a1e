"""`appliance upgrade FILE` on a full disk: what runs goes on, and nothing half stays."""

import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from support.machines.private_mounts import full, in_private_mounts, mount
from support.network.ports import accepts, free_port
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.supervisor.installable_release import installable, put_in_place
from support.supervisor.release import NotOurChild, Release

pytestmark = [
    pytest.mark.programs,
    pytest.mark.needs("mount", root=True),
    pytest.mark.slow("installs a release, and starts the whole appliance"),
]

_OPT: Final = Path("/opt")
_NEW: Final = "lb-appliance-9.9.9"
_BALLAST: Final = "ballast"
_FILLS: Final = """\
if "run" in sys.argv:
    os.makedirs("/opt/ballast", exist_ok=True)  # `run` may start the script again
    for number in range(1 << 20):
        try:
            os.mkdir(f"/opt/ballast/{number}")
        except OSError:
            break
"""


@dataclass(slots=True, kw_only=True)
class Machine:
    """An appliance that runs, the release that starts here, and a newer one."""

    appliance: Appliance
    port: int
    former: Release
    newer: Release
    folder: Path

    def upgrade(self, archive: Path) -> "subprocess.CompletedProcess[str]":
        """Run the operator's command."""
        return self.former.command("upgrade", str(archive), "--unsigned", paths=self.appliance.paths)

    def problems(self) -> list[str]:
        """Return what the status finds wrong."""
        said: list[str] = self.appliance.status()["problems"]  # type: ignore[assignment]  # JSON
        return said

    def assert_it_goes_on(self, before: list[Path]) -> None:
        """Assert that the one that ran still does, and that nothing was left in the releases' directory."""
        assert self.appliance.is_running()
        assert accepts(self.port)
        assert sorted(_OPT.iterdir()) == before
        assert (_OPT / "appliance").readlink() == Path("lb-appliance-0.0.9")

    def assert_it_upgrades(self, archive: Path, *, left: Sequence[str] = ()) -> None:
        """Assert that the newer release takes over and starts from now on; new are it and `left`."""
        done = self.upgrade(archive)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"{_NEW} starts from now on" in done.stdout
        assert (_OPT / "appliance").readlink() == Path(_NEW)
        assert sorted(each.name for each in _OPT.iterdir()) == [
            "appliance",
            "appliance.former",
            *left,
            "lb-appliance-0.0.9",
            _NEW,
        ]
        former = self.appliance.process
        pid = int(self.appliance.paths.runtime.joinpath("supervisord.pid").read_text())
        self.appliance.process = NotOurChild(pid)
        assert former.wait(60) == 0
        wait_until(lambda: accepts(self.port), what="clients are served")


@contextmanager
def machine(size: str, *, runtime: str = "") -> Iterator[Machine]:
    """Run an appliance on a machine whose releases' directory is a small file system of its own."""
    port = free_port()
    frontend = {"bind": [f"127.0.0.1:{port}"], "respond": "/alive"}
    config = {"api": {"workers": 1, "frontends": {"alive": frontend}}, "defaults": {"drain": "1s"}}
    mount(_OPT, size=size)
    appliance = Appliance(config)
    if runtime:
        mount(appliance.paths.runtime, size=runtime)
    with tempfile.TemporaryDirectory() as name, appliance:
        folder = Path(name)
        former, newer = Release(folder / "former", "0.0.9"), Release(folder / "newer", "9.9.9")
        put_in_place(former, _OPT)
        yield Machine(appliance=appliance, port=port, former=former, newer=newer, folder=folder)


@contextmanager
def filled_from(moment: Callable[[], bool]) -> Iterator[None]:
    """Have somebody else take all room of the releases' directory from a moment on, what is freed too."""
    over, ballast = threading.Event(), _OPT / _BALLAST

    def fill() -> None:
        wait_until(moment, what="the disk is to be full", timeout=60.0)
        with ballast.open("wb", buffering=0) as file:
            while not over.is_set():
                with suppress(OSError):
                    file.write(bytes(1 << 16))

    thread = threading.Thread(target=fill)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        ballast.unlink()


def _no_more_files() -> None:
    with machine("64m,nr_inodes=200") as made:
        archive, before = installable(made.newer, made.folder), sorted(_OPT.iterdir())
        done = made.upgrade(archive)
        assert done.returncode == 1
        assert "more files, and 10000 are needed\nNext: make room in /opt" in done.stderr
        made.assert_it_goes_on(before)


def _full_before_it_begins() -> None:
    with machine("64m") as made:
        archive, before = installable(made.newer, made.folder), sorted(_OPT.iterdir())
        with full(_OPT):
            done = made.upgrade(archive)
        assert done.returncode == 1
        assert "/opt has 0 MB left, and 32 MB are needed" in done.stderr
        assert "Next: make room in /opt" in done.stderr
        made.assert_it_goes_on(before)
        made.assert_it_upgrades(archive)


def _full_while_it_is_unpacked() -> None:
    with machine("64m") as made:
        archive = installable(made.newer, made.folder, padding=80 << 20)
        before = sorted(_OPT.iterdir())
        done = made.upgrade(archive)
        assert done.returncode == 1
        assert "/padding: No space left on device\nNext: make room in /opt" in done.stderr
        made.assert_it_goes_on(before)
        subprocess.run(["mount", "-o", "remount,size=256m", _OPT], check=True)
        made.assert_it_upgrades(archive)


def _full_while_it_is_installed() -> None:
    with machine("64m") as made:
        archive, before = installable(made.newer, made.folder), sorted(_OPT.iterdir())
        with filled_from((_OPT / _NEW).exists):
            done = made.upgrade(archive)
        assert done.returncode == 1
        assert "Error: /opt: No space left on device\nNext: make room in /opt" in done.stderr
        made.assert_it_goes_on(before)
        made.assert_it_upgrades(archive)


def _full_when_it_takes_over() -> None:
    with machine("64m,nr_inodes=20k") as made:
        made.assert_it_upgrades(installable(made.newer, made.folder, before=_FILLS), left=[_BALLAST])


def _full_state_directory() -> None:
    with machine("64m") as made:
        state = made.appliance.paths.state
        mount(state, size="64k")
        with full(state):
            made.assert_it_upgrades(installable(made.newer, made.folder))
            said = f"reload cannot write {made.appliance.paths.last_good}: No space left on device"
            wait_until(lambda: said in made.problems(), what="the status says what is not kept", timeout=60.0)
        wait_until(lambda: not made.problems(), what="all heals with room", timeout=60.0)


def _full_runtime_directory() -> None:
    with machine("64m", runtime="8m") as made:
        with full(made.appliance.paths.runtime):
            made.assert_it_upgrades(installable(made.newer, made.folder))
            unwritten = made.appliance.wait_for_event("board-not-written")
            assert f"{made.appliance.paths.runtime}/" in str(unwritten["reason"])
        wait_until(lambda: not made.problems(), what="all heals with room", timeout=60.0)


def test_too_little_room_is_named_before_anything_is_installed():
    """The command says how much is needed where, and what to do; with room the same command is an upgrade."""
    in_private_mounts(_full_before_it_begins)


def test_too_few_files_are_named_before_anything_is_installed():
    """A disk may have room and take no more files."""
    in_private_mounts(_no_more_files)


def test_a_disk_that_is_full_while_the_archive_is_unpacked():
    """The file that did not fit is named, not the archive; nothing stays, and with room it is an upgrade."""
    in_private_mounts(_full_while_it_is_unpacked)


def test_a_disk_that_somebody_fills_while_the_release_is_installed():
    """The full disk is the reason, whatever tool failed; nothing stays, and with room it is an upgrade."""
    in_private_mounts(_full_while_it_is_installed)


def test_a_disk_that_is_full_when_the_release_takes_over():
    """The release is in charge and starts from then on: what says so needs no room any more."""
    in_private_mounts(_full_when_it_takes_over)


def test_an_upgrade_over_a_full_state_directory():
    """It takes over; the status names what is not kept until there is room."""
    in_private_mounts(_full_state_directory)


def test_an_upgrade_over_a_full_runtime_directory():
    """It takes over and serves; the log names what could not be written, and all heals with room."""
    in_private_mounts(_full_runtime_directory)
