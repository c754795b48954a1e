"""Files that say why a program could not start."""

from pathlib import Path

import pytest

from appliance.model.paths import Paths
from appliance.net.files import program_failures
from appliance.net.files.program_failures import ProgramFailure
from appliance.wire.lines.control import AnswerProblem

pytestmark = pytest.mark.sockets

FAILURE = ProgramFailure(since=1.5, problems=(AnswerProblem(message="no"), AnswerProblem(message="never")))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """A failure is read by the name of its program, until it is removed; a damaged file is passed over."""
    paths = Paths(runtime=tmp_path)
    program_failures.write(paths, "proxy-api", FAILURE)
    (tmp_path / "health.failure.json").write_text("{")
    assert list(program_failures.read_all(tmp_path)) == [("proxy-api", FAILURE)]
    assert FAILURE.reason == "no; never"
    program_failures.remove(paths, "proxy-api")
    program_failures.remove(paths, "proxy-api")
    assert list(program_failures.read_all(tmp_path)) == []


def test_a_directory_in_its_place(tmp_path: Path) -> None:
    """What is no file is set aside for the one that is to be written, or removed."""
    paths = Paths(runtime=tmp_path)
    program_failures.failure_file(paths, "proxy-api").mkdir()
    program_failures.write(paths, "proxy-api", FAILURE)
    assert list(program_failures.read_all(tmp_path)) == [("proxy-api", FAILURE)]
