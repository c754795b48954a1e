"""State is disposable: with a good configuration the appliance starts, whatever its own files hold."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.fuzzing.damage import SPOILS
from support.network.ports import accepts, free_port
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

pytestmark = [pytest.mark.programs, pytest.mark.slow("several starts of the whole appliance")]

_KINDS = (
    "flipped-5",
    "empty",
    "nested",
    "not-utf-8",
    "overflow-u32",
    "huge",
    "directory",
    "fifo",
    "dangling",
    "device",
)


def config(port: int, **more: object) -> dict[str, object]:
    """Return a file with one frontend and one server, which need not answer."""
    return {
        "api": {"workers": 1, "frontends": {"kube-api": {"bind": [f"127.0.0.1:{port}"], "pool": "masters"}}},
        "pools": {"masters": {"servers": {"m0": {"address": "127.0.0.1:9"}}}},
        "defaults": {"drain": "1s"},
        **more,
    }


def files(appliance: Appliance) -> list[Path]:
    """Return every file of ours that is there, no socket among them, and nothing that is aside."""
    paths = appliance.paths
    found = [each for root in (paths.runtime, paths.state) for each in root.rglob("*") if each.is_file()]
    return [each for each in found if ".damaged" not in str(each) and not each.name.startswith(".")]


def spoil(path: Path, damage: str) -> None:
    """Damage a file; one that is empty has no bytes to flip."""
    if damage.startswith("flipped") and not (path.exists() and path.stat().st_size):
        return
    # A program that lives may have set the file aside since it was listed, or written it anew meanwhile.
    with suppress(FileNotFoundError, NotADirectoryError, FileExistsError):
        SPOILS[damage](path)


def traceback(appliance: Appliance) -> str:
    """Return the line of the log with the first traceback, "" without one."""
    return next((line for line in appliance.log().splitlines() if "Traceback" in line), "")


class Site:
    """An appliance that runs, with its port; each test starts it anew, or its programs."""

    def __init__(self, appliance: Appliance, port: int) -> None:
        self.appliance = appliance
        self.port = port

    def reset(self) -> None:
        """Have it as after its first start, with an empty log and nothing aside."""
        assert self.appliance.reload(config(self.port))["ok"] is True
        paths = self.appliance.paths
        for each in [each for root in (paths.runtime, paths.state) for each in root.rglob("*.damaged*")]:
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
        self.appliance.forget_log()


@pytest.fixture(scope="module")
def started() -> Iterator[Site]:
    """Run an appliance that the tests of this module share."""
    port = free_port()
    with Appliance(config(port)) as appliance:
        yield Site(appliance, port)


@pytest.fixture
def site(started: Site) -> Site:
    """Give it as it is where nothing was damaged yet."""
    started.reset()
    return started


@pytest.mark.promise("docs/installing.md", "damaged state hinders no start")
@pytest.mark.parametrize("damage", _KINDS)
def test_a_start_goes_on_with_every_file_damaged(site: Site, damage: str):
    """Every file in the runtime and state directories is spoilt; the next start serves, and says it."""
    appliance, port = site.appliance, site.port
    assert appliance.command("drain", "masters/m0").returncode == 0
    appliance.stop(patience=30)
    spoilt = files(appliance)
    assert {"last-good.json", "operator-states.json", "accepted.json", "health.lock"} <= {
        each.name for each in spoilt
    }
    for each in spoilt:
        spoil(each, damage)
    appliance.start()
    wait_until(lambda: accepts(port), what="clients are served")
    assert traceback(appliance) == ""
    if damage != "dangling":  # which is no file
        said = str(appliance.events("state-damaged"))
        assert "last-good.json" in said
        assert "accepted.json" in said
        assert appliance.events("operator-states-unreadable")
        aside = appliance.command("status", "--json", check=False).stdout
        assert "last-good.json.damaged" in aside
        assert "operator-states.json.damaged" in aside
    assert appliance.reload(config(port, log={"level": "warning"}))["ok"] is True


@pytest.mark.parametrize("damage", ["nested", "overflow-u32", "flipped-5", "fifo", "directory"])
def test_programs_come_back_with_every_file_damaged(site: Site, damage: str):
    """Each program is killed after all its files were spoilt, and each is there again and obeys."""
    appliance, port = site.appliance, site.port
    for program in ("health", "proxy-api", "reload"):
        for each in files(appliance):
            if not each.name.startswith(("worker-", "appliance.lock")):  # of those that live on
                spoil(each, damage)
        # One whose board was cut short may have ended by that already (SIGBUS).
        appliance.wait_for_restart(program, appliance.kill(program))
        wait_until(lambda: accepts(port), what="clients are served")
    wait_until(lambda: appliance.reload()["ok"] is True, what="a reload is done", timeout=60.0, pause=0.5)
    # `health`, whose board was cut short, may end by that only now, and is waited for by the next one.
    obeyed = [appliance.reload(config(port, log={"level": "debug"}))]
    wait_until(lambda: obeyed[-1]["ok"] or obeyed.append(appliance.reload()), what="it is obeyed", pause=0.5)
    # A board that is cut short kills who has it mapped (SIGBUS): a program may be on its way once more.
    for program in ("health", "proxy-api", "reload"):
        wait_until(lambda program=program: appliance.program_pid(program), what=f"{program} answers")
    assert traceback(appliance) == ""
