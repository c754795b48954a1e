"""Archives of releases: what is unpacked, and what is refused before anything of it is used."""

import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest
from support.supervisor import releases

from appliance.net.releases import archive
from appliance.net.releases.archive import ArchiveRefused, compare, expected_checksum, open_archive, unpack

pytestmark = pytest.mark.sockets


def _unpacked(data: bytes, folder: Path) -> str:
    return unpack(io.BytesIO(releases.compressed(data)), folder)


def test_its_files_are_unpacked(tmp_path: Path):
    """The name of its folder is that of the release."""
    assert (
        _unpacked(releases.archive({"a.whl": b"wheel", "requirements.txt": b""}), tmp_path) == releases.NAME
    )
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {
        "a.whl": b"wheel", "requirements.txt": b"",
    }  # fmt: skip


def _entry(name: str, kind: bytes = tarfile.REGTYPE, **fields: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type = kind
    for key, value in fields.items():
        setattr(made, key, value)
    return made


@pytest.mark.parametrize(
    "entry",
    [
        _entry(f"{releases.NAME}/../outside"),
        _entry("/etc/passwd"),
        _entry(f"{releases.NAME}/.hidden"),
        _entry(f"{releases.NAME}/inner/file"),
        _entry("another/file"),
        _entry(f"{releases.NAME}/link", tarfile.SYMTYPE, linkname="/etc/passwd"),
        _entry(f"{releases.NAME}/hard", tarfile.LNKTYPE, linkname="/etc/passwd"),
        _entry(f"{releases.NAME}/device", tarfile.CHRTYPE),
        _entry(f"{releases.NAME}/sparse", tarfile.GNUTYPE_SPARSE),
    ],
    ids=lambda entry: f"{entry.name} {entry.type!r}",
)
def test_anything_but_plain_files_of_one_folder_is_refused(entry: tarfile.TarInfo, tmp_path: Path):
    """Nothing is written outside of the folder, whatever an archive says."""
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(ArchiveRefused):
        _unpacked(releases.with_entry(entry), folder)
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("name", ["lb-appliance", "lb-appliance-", "other-1.0", "lb-appliance-1-2", "."])
def test_another_folder_is_refused(name: str, tmp_path: Path):
    """It is a release by its name alone."""
    with pytest.raises(ArchiveRefused):
        _unpacked(releases.archive(name=name), tmp_path)


def test_a_cut_or_damaged_one_is_refused(tmp_path: Path):
    """At whatever byte it ends, and wherever one is another."""
    whole = releases.compressed(releases.archive())
    for at in (0, 1, 20, len(whole) // 2, len(whole) - 9):
        folder = tmp_path / str(at)
        folder.mkdir()
        with pytest.raises(ArchiveRefused):
            unpack(io.BytesIO(whole[:at]), folder)


def test_one_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its size says little: what comes out is counted; and so are the files."""
    monkeypatch.setattr(archive, "MOST_UNPACKED", 1 << 20)
    with pytest.raises(ArchiveRefused, match="more than 1 MB"):
        _unpacked(releases.archive({"zeros": bytes(2 << 20)}), tmp_path)
    with pytest.raises(ArchiveRefused, match="files"):
        _unpacked(releases.archive({f"f{number}": b"" for number in range(600)}), tmp_path)


def test_what_is_no_file_is_refused(tmp_path: Path):
    """A pipe that nobody writes to does not stop it, and a directory is none."""
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises((ArchiveRefused, IsADirectoryError)):
            open_archive(tmp_path / name)


def test_the_checksum_beside_it(tmp_path: Path):
    """What sha256sum has written is compared; garbage there is an error, and no file is none."""
    path, beside = tmp_path / "release.tar.gz", tmp_path / "release.tar.gz.sha256"
    path.write_bytes(b"release")
    assert expected_checksum(path) is None
    right = hashlib.sha256(b"release").hexdigest()
    beside.write_text(f"{right.upper()}  release.tar.gz\n")
    assert expected_checksum(path) == right
    with open_archive(path) as file:
        compare(file, right)
        assert file.read() == b"release"
        with pytest.raises(ArchiveRefused, match="damaged, or another one"):
            compare(file, "0" * 64)
    for garbage in (b"", b"\xff\xfe", b"0" * 63, b"x" * 64):
        beside.write_bytes(garbage)
        with pytest.raises(ArchiveRefused, match="SHA-256"):
            expected_checksum(path)
