"""The watchdog and heartbeats that somebody has removed."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog import get_logger

from appliance.core.watchdog import START
from appliance.model.paths import Paths
from appliance.net.boards import heartbeats
from appliance.supervisor.watchdog import HeartbeatWatch

pytestmark = pytest.mark.programs


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Make a runtime directory."""
    (tmp_path / "run").mkdir()
    return Paths(runtime=tmp_path / "run")


@pytest.fixture
def hanging() -> Iterator["subprocess.Popen[bytes]"]:
    """Run a process that never beats."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


@pytest.mark.promise("program", "watchdog")
def test_one_that_hangs_is_ended_also_where_its_heartbeat_was_removed(
    paths: Paths, hanging: "subprocess.Popen[bytes]"
):
    """It cannot make the file again, so that it is as one that has not begun."""
    watch = HeartbeatWatch(paths, get_logger())
    hung = [watch.look({"health": hanging.pid}, float(second)) for second in range(int(START) + 5)]
    assert [each.pid for looked in hung for each in looked] == [hanging.pid]
    assert hanging.wait(10) < 0


def test_a_child_that_hangs_before_it_beats_is_ended(paths: Paths, hanging: "subprocess.Popen[bytes]"):
    """Its parent has named it: it is given the time of a start, and then it is ended."""
    heartbeats.expect(paths.heartbeat("tracker"), hanging.pid)
    watch = HeartbeatWatch(paths, get_logger())
    looks = [(second, watch.look({}, float(second))) for second in range(int(START) + 5)]
    ended = [(second, each.pid) for second, hung in looks for each in hung]
    assert [pid for _, pid in ended] == [hanging.pid]
    assert ended[0][0] > START
    assert hanging.wait(10) < 0


@pytest.mark.slow("several starts of the whole appliance")
def test_one_that_lives_makes_its_heartbeat_again(paths: Paths):
    """What the watchdog has made in its place is taken by the program, and not written over."""
    path = paths.heartbeat("health")
    own = heartbeats.Heartbeat(path)
    own.beat(1.0)
    path.unlink()
    heartbeats.make_room(path)
    assert heartbeats.read(path) is None
    own.beat(1.0 + heartbeats.RENEW)
    heartbeats.make_room(path)
    life = heartbeats.read(path)
    assert life is not None
    assert life.is_alive
    assert life.beat == int((1.0 + heartbeats.RENEW) * 1e9)


@pytest.mark.slow("several starts of the whole appliance")
def test_a_damaged_heartbeat_is_mended(paths: Paths):
    """The program says again who it is, in the same file."""
    path = paths.heartbeat("health")
    own = heartbeats.Heartbeat(path)
    own.beat(1.0)
    with path.open("r+b") as file:
        file.write(bytes(24))
    assert heartbeats.read(path) is None
    own.beat(1.0 + heartbeats.RENEW)
    life = heartbeats.read(path)
    assert life is not None
    assert life.is_alive
