"""The report is read as it was written, and writing it follows nothing that others have put there."""

from pathlib import Path

import pytest

from appliance.model.guest.report import GuestProblem, GuestReport, Origin
from appliance.model.paths import Paths
from appliance.net.files.guest_report_file import publish, read

pytestmark = pytest.mark.sockets

REPORT = GuestReport(
    origin=Origin.ISO,
    applied_at=1.5,
    properties={"dns": "x"},
    problems=(GuestProblem(key="config", message="wrong", line=1, column=2),),
    notes=("noted",),
)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Give a runtime directory that is not there yet."""
    return Paths(runtime=tmp_path / "run/appliance")


def test_what_was_written_is_read(paths: Paths):
    """Everybody may read the file; the directory is its owner's alone."""
    publish(paths, REPORT)
    assert read(paths) == REPORT
    assert paths.guest_report.stat().st_mode & 0o777 == 0o644
    assert paths.runtime.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in paths.runtime.iterdir()] == ["guest.json"]


def test_nothing_or_garbage_is_none(paths: Paths):
    """A container has none, and a file of another version is none of ours."""
    assert read(paths) is None
    publish(paths, REPORT)
    paths.guest_report.write_text('{"origin": "moon"}')
    assert read(paths) is None


@pytest.mark.promise("rights", "the files in the runtime and state directories")
def test_links_are_not_followed(paths: Paths, tmp_path: Path):
    """Root writes it into a folder of the appliance's user, who must not choose what is written to."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    paths.runtime.mkdir(parents=True)
    for name in ("guest.json", "guest.new"):
        (paths.runtime / name).symlink_to(victim)
    publish(paths, REPORT)
    assert victim.read_text() == "precious"
    assert read(paths) == REPORT
