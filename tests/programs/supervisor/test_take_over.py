"""A second `appliance run` takes over from the one that runs: an upgrade, and the way back."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.supervisor.loaded_site import Site, loaded_site
from support.supervisor.release import DIES, Release

import appliance
from appliance.model.take_overs import TakeOvers

pytestmark = pytest.mark.programs

_FULL = os.environ.get("E2E_FULL") == "1"


@pytest.fixture
def site() -> Iterator[Site]:
    """Run the appliance with its load."""
    with loaded_site() as made:
        yield made


@pytest.fixture
def newer(tmp_path: Path) -> Release:
    """Return a release that is newer than the one under test."""
    return Release(tmp_path / "newer", "9.9.9")


@pytest.mark.promise("survives", "an appliance that another `appliance run` takes over from")
def test_an_upgrade_and_the_way_back(site: Site, newer: Release, tmp_path: Path):
    """Nothing ends, nothing is refused, no byte is wrong; verdicts and the operator's words stay."""
    made = site.appliance
    made.command("drain", "masters/master-1")
    for release in (newer, Release(tmp_path / "former", "0.0.9")):
        site.upgrade(release)
        site.wait_for_one_generation()
        site.wait_for_traffic()
        assert made.status()["version"] == release.version
    assert made.accepted() == 1
    assert [each["state"] for each in _servers(made) if each["name"] == "master-1"] == ["drain"]
    told = [each["detail"] for each in _told(made, "appliance-taken-over")]
    assert [each.partition(",")[0] for each in told] == [
        f"from version {appliance.__version__}",
        "from version 9.9.9",
    ]
    assert not made.events("sessions-lost")
    shown = _shown(made)
    assert (shown.done, shown.failed) == (2, 0)
    assert shown.last is not None
    assert (shown.last.version, shown.last.by) == ("9.9.9", "0.0.9")
    assert "from version 9.9.9" in made.command("status", check=False).stdout


@pytest.mark.slow("several starts of the whole appliance")
def test_two_at_once(site: Site, newer: Release):
    """One of them takes over, the other one says that somebody does, or takes over after it."""
    former = site.appliance.process
    both = [site.start(newer), site.start(newer)]
    assert former.wait(60) == 0
    wait_until(
        lambda: (
            site.appliance.events("appliance-taken-over")
            and len([each for each in both if each.poll() is None]) == 1
        ),
        what="one of them is in charge",
        timeout=60.0,
    )
    (site.appliance.process,) = (each for each in both if each.poll() is None)
    site.wait_for_one_generation()
    site.wait_for_traffic()


@pytest.mark.slow("several starts of the whole appliance")
def test_a_configuration_that_is_refused(site: Site, newer: Release):
    """Every error is printed, and the one that runs has not been asked for anything."""
    before = site.programs()
    site.appliance.paths.config.write_text("api: 1\n")
    assert site.start(newer).wait(60) == 3
    assert "api" in site.appliance.log()
    assert not site.appliance.events("standing-by")
    assert site.programs() == before
    site.wait_for_traffic()


@pytest.mark.slow("several starts of the whole appliance")
def test_a_release_that_is_not_whole(site: Site, tmp_path: Path):
    """A module that cannot be loaded is named, and the one that runs has not been asked for anything."""
    before = site.programs()
    broken = Release(tmp_path / "broken", "9.9.9", changes={"programs/worker.py": "import no_such_library\n"})
    assert site.start(broken).wait(60) == 3
    assert "No module named 'no_such_library'" in site.appliance.log()
    assert not site.appliance.events("standing-by")
    assert site.programs() == before
    site.wait_for_traffic()


_BROKEN = ["worker.py", *(["supervisor.py", "health.py", "proxy.py"] if _FULL else [])]


@pytest.mark.slow("waits until a new release is given up")
@pytest.mark.promise("survives", "an appliance that another `appliance run` takes over from")
@pytest.mark.parametrize("module", _BROKEN)
def test_a_program_that_does_not_come_up(site: Site, tmp_path: Path, module: str):
    """The new one gives back and ends with exit code 3; the former one has all its programs again."""
    former = site.appliance.process
    broken = Release(tmp_path / "broken", "9.9.9", changes={f"programs/{module}": DIES})
    assert site.start(broken).wait(120) == 3
    (failed,) = _told(site.appliance, "take-over-failed")
    assert "9.9.9" in failed["detail"]
    shown = _shown(site.appliance)
    assert (shown.done, shown.failed) == (0, 1)
    assert shown.last_failed is not None
    assert shown.last_failed.version == "9.9.9"
    assert "version 9.9.9 could not take over" in site.appliance.command("status", check=False).stdout
    assert former.poll() is None
    site.wait_for_own_programs()
    site.wait_for_one_generation()
    site.wait_for_traffic()
    assert site.appliance.reload()["ok"] is True


@pytest.fixture
def waiting(tmp_path: Path) -> tuple[Release, Path]:
    """Return a newer release that is not ready before there is a certain file."""
    go = tmp_path / "go"
    wait = f"while not os.path.exists({str(go)!r}): time.sleep(0.02)"
    text = f"if __name__ == '__main__':\n    import os, time\n    {wait}\n"
    return Release(tmp_path / "waiting", "9.9.9", changes={"programs/health.py": text}), go


_MOMENTS = {
    "asked": ("standing-by", 0),
    "starting": ("program-starting", 3),
    "adopted": ("generation-adopted", 0),
    "accepting": ("generation-accepting", 1),
}


def _wait_for(site: Site, moment: str) -> None:
    event, before = _MOMENTS[moment]
    wait_until(
        lambda: len(site.appliance.events(event)) > before, what=f"it is {moment}", timeout=60.0, pause=0.001
    )


@pytest.mark.slow("several starts of the whole appliance")
@pytest.mark.parametrize("moment", _MOMENTS if _FULL else ["accepting"])
def test_a_new_one_that_is_killed(site: Site, waiting: tuple[Release, Path], moment: str):
    """The former one goes on, at whatever step the new one died."""
    former, new = site.appliance.process, site.start(waiting[0])
    _wait_for(site, moment)
    new.kill()
    new.wait()
    wait_until(lambda: site.appliance.events("take-over-failed"), what="the former one goes on")
    assert former.poll() is None
    site.wait_for_own_programs()
    site.wait_for_one_generation()
    site.wait_for_traffic()


@pytest.mark.slow("several starts of the whole appliance")
@pytest.mark.skipif(not _FULL, reason="it takes a minute: E2E_FULL=1")
def test_a_new_one_that_hangs(site: Site, waiting: tuple[Release, Path]):
    """The former one waits for it no longer than a minute, kills it, and goes on."""
    new = site.start(waiting[0])
    _wait_for(site, "accepting")
    new.send_signal(signal.SIGSTOP)
    assert new.wait(120) == -signal.SIGKILL
    site.wait_for_own_programs()
    site.wait_for_one_generation()
    site.wait_for_traffic()


@pytest.mark.slow("several starts of the whole appliance")
@pytest.mark.parametrize("moment", ["asked", "starting", "adopted"] if _FULL else ["starting"])
def test_a_former_one_that_is_killed(site: Site, waiting: tuple[Release, Path], moment: str):
    """The new one is in charge, at whatever step the former one died."""
    former, new = site.appliance.process, site.start(waiting[0])
    _wait_for(site, moment)
    former.kill()
    former.wait()
    waiting[1].touch()
    site.appliance.process = new
    wait_until(lambda: site.appliance.events("appliance-taken-over"), what="the new one is in charge")
    site.wait_for_own_programs()
    site.wait_for_one_generation()
    site.wait_for_traffic()


@pytest.mark.slow("several starts of the whole appliance")
def test_a_former_one_that_is_told_to_end(site: Site, waiting: tuple[Release, Path]):
    """It withdraws and stops everything, also what the new one has started; the new one fails."""
    made, new = site.appliance, site.start(waiting[0])
    _wait_for(site, "adopted")
    made.command("sessions", "kill", "--source", "127.0.0.1", check=False)
    assert made.stop(patience=150) == 0
    assert new.wait(60) == 3
    wait_until(lambda: not made.processes(), what="nothing is left", timeout=60.0)


def _servers(made: Appliance) -> list[dict[str, object]]:
    pools = made.status()["pools"]
    assert isinstance(pools, list)
    return [server for pool in pools for server in pool["servers"]]


def _shown(made: Appliance) -> TakeOvers:
    return msgspec.convert(made.status()["take_overs"], TakeOvers)


def _told(made: Appliance, kind: str) -> list[dict[str, str]]:
    def found() -> list[dict[str, str]]:
        listed = json.loads(made.command("events", "--json").stdout)
        return [each for each in listed if each["kind"] == kind]

    wait_until(found, what=f"{kind} is told")
    return found()
