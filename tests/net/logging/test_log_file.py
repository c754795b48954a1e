"""The log in a file: found again after a rotation, and no reason to stop when it cannot grow."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.net.logging.log_file import LogFile, objection

pytestmark = pytest.mark.programs


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Name a file that is not there yet."""
    return tmp_path / "a.log"


def run(code: str, path: Path) -> list[dict[str, object]]:
    """Run code that has a `logger` with a file, return what went to standard output."""
    before = (
        "import os, resource, sys\nfrom appliance.net.logging import log\n"
        "logger = log.configure('x', level='info', form='json', file=sys.argv[1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", before + code, str(path)], check=True, stdout=subprocess.PIPE, timeout=30
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def events(path: Path) -> list[object]:
    """Return the events of a file's lines."""
    return [json.loads(line)["event"] for line in path.read_text().splitlines()]


def test_lines_go_to_the_file_and_nowhere_else(path: Path):
    """They are appended to what is there; only its owner and group may read it."""
    path.write_text('{"event": "old"}\n')
    assert run("logger.info('new')", path) == []
    assert events(path) == ["old", "new"]
    path.unlink()
    run("logger.info('new')", path)
    assert not path.stat().st_mode & 0o007


def test_after_a_rotation_with_create(path: Path):
    """Renamed and made anew: the next line is in the new file, all before it in the old one."""
    aside = path.with_suffix(".1")
    run(
        "logger.info('one')\nos.rename(sys.argv[1], sys.argv[1][:-4] + '.1')\n"
        "open(sys.argv[1], 'x').close()\nlogger.info('two')",
        path,
    )
    assert (events(aside), events(path)) == (["one"], ["two"])


def test_during_a_rotation(path: Path):
    """Between rename and create no file is made in logrotate's way: the line is in the old one."""
    file = LogFile(str(path))
    path.rename(path.with_suffix(".1"))
    file.write(b"between\n")
    assert not path.exists()
    assert path.with_suffix(".1").read_bytes() == b"between\n"
    path.touch()
    file.write(b"after\n")
    assert path.read_bytes() == b"after\n"
    file.close()


def test_a_rotation_without_create(path: Path, monkeypatch: pytest.MonkeyPatch):
    """A second later the file is made anew, by `reopen` at once."""
    file = LogFile(str(path))
    path.rename(path.with_suffix(".1"))
    now = 100.0
    monkeypatch.setattr("appliance.net.logging.log_file.time.monotonic", lambda: now)
    file.write(b"old\n")
    now += 1.0
    file.write(b"new\n")
    assert path.read_bytes() == b"new\n"
    path.rename(path.with_suffix(".2"))
    file.reopen()
    assert path.read_bytes() == b""
    file.close()


def test_where_no_new_file_can_be_had(path: Path):
    """The old one goes on: no line is lost."""
    file = LogFile(str(path))
    path.rename(path.with_suffix(".1"))
    path.mkdir()
    file.write(b"on\n")
    assert path.with_suffix(".1").read_bytes() == b"on\n"
    file.close()


def test_a_full_disk_stops_nobody(path: Path):
    """What does not fit is counted; what follows a line that was cut is one of its own, and says so."""
    said = run(
        "size = lambda most: resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))\n"
        "logger.info('one')\nsize(os.stat(sys.argv[1]).st_size + 10)\n"
        "logger.info('cut')\nlogger.info('lost')\nsize(resource.RLIM_INFINITY)\nlogger.info('again')",
        path,
    )
    assert said == []
    first, cut, *rest = path.read_text().splitlines()
    assert json.loads(first)["event"] == "one"
    assert len(cut) == 10
    assert [json.loads(each)["event"] for each in rest] == ["lines-dropped", "again"]
    assert json.loads(rest[0])["count"] == 2


def test_a_file_that_cannot_be_had(tmp_path: Path):
    """Standard output is used instead, with the reason; and the file, once it can be had."""
    path = tmp_path / "there" / "a.log"
    unusable, on = run(
        "logger.info('one')\nos.mkdir(os.path.dirname(sys.argv[1]))\n"
        "import time; time.sleep(1.1)\nlogger.info('two')",
        path,
    )
    assert (unusable["event"], unusable["path"]) == ("log-file-unusable", str(path))
    assert unusable["reason"] == "No such file or directory"
    assert on["event"] == "one"
    assert events(path) == ["two"]


def test_what_is_no_file(tmp_path: Path):
    """A pipe, which may have no reader one day, and a directory are refused with a reason."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    assert objection(str(tmp_path / "pipe")) == "No such device or address"
    assert objection(str(tmp_path / "directory")) == "Is a directory"
    assert objection("/dev/null") == "not a regular file"
    assert objection(str(tmp_path / "file")) is None


def test_another_file_and_back(path: Path):
    """A change of configuration is obeyed by loggers that are there, too."""
    (said,) = run(
        "bound = logger.bind(worker=1)\nbound.info('one')\n"
        "log.configure('x', level='info', form='json', file=sys.argv[1] + 'x')\nbound.info('two')\n"
        "log.configure('x', level='info', form='json')\nbound.info('three')",
        path,
    )
    assert events(path) == ["one"]
    assert events(Path(f"{path}x")) == ["two"]
    assert said["event"] == "three"
