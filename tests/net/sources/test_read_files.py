"""What was read of files at one moment: each once, within a bound, and the same again later."""

import errno
import os
from pathlib import Path

import pytest

from appliance.net.files import config_file
from appliance.net.files.state_files import FileUnusable
from appliance.net.sources import read_files
from appliance.net.sources.read_files import FileMissing, ReadFiles

pytestmark = pytest.mark.sockets


def test_a_file_is_read_once(tmp_path: Path):
    """All that is made of the files is of one moment."""
    file = tmp_path / "a"
    file.write_text("one")
    files = ReadFiles()
    assert files.read(str(file)) == b"one"
    file.write_text("two")
    assert files.content(file) == b"one"
    assert files.again([]).content(file) == b"two"


def test_what_cannot_be_read_is_an_error_of_the_system(tmp_path: Path):
    """A missing file, and one that is none."""
    files = ReadFiles()
    with pytest.raises(OSError, match="No such file") as missing:
        files.read(str(tmp_path / "absent"))
    with pytest.raises(OSError, match="is a directory, not a file") as unusable:
        files.read(str(tmp_path))
    assert (missing.value.errno, unusable.value.errno) == (errno.ENOENT, errno.EIO)
    assert isinstance(files.content(tmp_path / "absent"), FileMissing)


def test_a_pattern_is_matched_once(tmp_path: Path):
    """New files come in with the next look."""
    for name in ("b.conf", "a.conf", "c.txt"):
        (tmp_path / name).touch()
    files, pattern = ReadFiles(), f"{tmp_path}/*.conf"
    assert [Path(each).name for each in files.matching(pattern)] == ["a.conf", "b.conf"]
    (tmp_path / "c.conf").touch()
    assert len(files.matching(pattern)) == 2
    assert len(files.again([]).matching(pattern)) == 3


def test_the_digest_differs_with_any_content_and_any_match(tmp_path: Path):
    """What is looked at again is the same until something of it is not."""
    file = tmp_path / "a.conf"
    file.write_text("one")
    files = ReadFiles()
    files.matching(f"{tmp_path}/*.conf")
    files.content(file)
    files.content(tmp_path / "absent")
    digests = [files.digest(), files.again([file]).digest()]
    assert digests[0] == digests[1]
    for change in (
        lambda: file.write_text("two"),
        (tmp_path / "b.conf").touch,
        (tmp_path / "absent").touch,
        file.unlink,
    ):
        change()
        digests.append(files.again([]).digest())
    assert len(set(digests)) == 5


def test_there_is_a_bound_to_the_number_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Files that include others without end cost no more than so many."""
    monkeypatch.setattr(read_files, "MOST_FILES", 3)
    files = ReadFiles()
    for name in ("a", "b", "c"):
        files.content(tmp_path / name)
    (tmp_path / "d").touch()
    with pytest.raises(OSError, match="more than 500 files"):
        files.read(str(tmp_path / "d"))
    with pytest.raises(OSError, match="more than 500 files"):
        files.matching("*")
    assert files.again([]).digest() == files.digest()


def test_there_is_a_bound_to_all_their_bytes(tmp_path: Path):
    """Each may be as long as all of them together may be."""
    files = ReadFiles()
    for name in ("a", "b"):
        (tmp_path / name).touch()
        os.truncate(tmp_path / name, config_file.LIMIT // 2 + 1)
    assert isinstance(files.content(tmp_path / "a"), bytes)
    unusable = files.content(tmp_path / "b")
    assert isinstance(unusable, FileUnusable)
    assert "with the files before it" in str(unusable)
