"""Which directories are their owner's alone, on real file systems."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machines import nobody

from appliance.net.privileges.private_directory import flaw

pytestmark = pytest.mark.sockets

_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give directories to others")
_OTHER = 65534


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a directory for its owner alone, on a way that is."""
    made = tmp_path / "lb"
    made.mkdir(mode=0o700)
    return made


def _flaw(path: Path) -> str | None:
    return flaw(path, owner=os.geteuid())


def test_what_is_ours_alone(place: Path):
    """Also where it does not exist yet, below a sticky /tmp, and through a link of our own."""
    (place.parent / "link").symlink_to(place)
    for path in (place, place / "new" / "deep", place.parent / "link", place.parent / "link" / ".." / "lb"):
        assert _flaw(path) is None, path


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o720, 0o702])
def test_writable_by_others(place: Path, mode: int):
    """For a group, for all, and with the sticky bit, which does not keep others from adding files."""
    place.chmod(mode)
    assert _flaw(place) == f"{place} is writable by others (mode {mode:04o})"


def test_a_way_that_others_can_change(place: Path):
    """Who may write a directory on the way may put another one there; in a sticky one he may not."""
    place.parent.chmod(0o777)
    assert _flaw(place) == f"{place.parent} is writable by others (mode 0777), on the way to {place}"
    place.parent.chmod(0o1777)
    assert _flaw(place) is None


@_ROOT
def test_another_user_s(place: Path):
    """The directory itself, one on the way, and a link that somebody else made in a directory for all."""
    os.chown(place, _OTHER, _OTHER)
    assert _flaw(place) == f"{place} belongs to user nobody"
    assert flaw(place, owner=_OTHER) is None
    assert _flaw(place / "run") == f"{place} belongs to user nobody, on the way to {place / 'run'}"
    ours, link = place.parent / "ours", place.parent / "link"
    ours.mkdir(mode=0o700)
    link.symlink_to(ours)
    os.lchown(link, _OTHER, _OTHER)
    assert _flaw(link) == f"{link} belongs to user nobody"


@_ROOT
def test_a_group_on_the_way(place: Path):
    """Root's group and the owner's own change nothing (umask 002); any other may."""
    place.parent.chmod(0o775)
    os.chown(place.parent, 0, 0)
    assert _flaw(place) is None
    os.chown(place.parent, 0, _OTHER)
    assert "writable by others" in str(_flaw(place))
    os.chown(place.parent, 0, 54321)  # a group that nobody knows
    assert "writable by others" in str(_flaw(place))


def test_links_that_never_end(place: Path):
    """A loop of links is the kernel's own error."""
    (place / "a").symlink_to(place / "b")
    (place / "b").symlink_to(place / "a")
    with pytest.raises(OSError, match="Too many levels"):
        _flaw(place / "a")


@pytest.fixture
def volume(place: Path) -> Iterator[Path]:
    """Mount a file system as Kubernetes mounts an emptyDir: root's, and open to all."""
    mounted = place / "volume"
    mounted.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0777", "volume", mounted], check=False)
    if done.returncode:
        pytest.skip("this machine mounts nothing")
    yield mounted
    subprocess.run(["umount", mounted], check=True)


@pytest.mark.programs
@_ROOT
def test_a_volume_of_a_container(volume: Path):
    """It is whoever's to whom it was given; one with a sticky bit is a /tmp, and others' are others'."""
    assert flaw(volume, owner=9445) is None
    (volume / "below").mkdir()
    assert "writable by others" in str(flaw(volume / "below", owner=9445))
    volume.chmod(0o1777)
    assert "writable by others" in str(flaw(volume, owner=9445))
    volume.chmod(0o777)
    os.chown(volume, _OTHER, _OTHER)
    assert "belongs to user nobody" in str(flaw(volume, owner=9445))


@pytest.mark.programs
@_ROOT
def test_in_a_user_namespace():
    """The machine's root is nobody's number there, as in a toolbox, and still no stranger."""
    code = (
        "import sys; from pathlib import Path; from appliance.net.privileges.private_directory import flaw;"
    )
    code += "print(Path('/').stat().st_uid, flaw(Path(sys.argv[1]), owner=0))"
    inside = ["unshare", "--user", "--map-user=0"]
    if not nobody.possible() or subprocess.run(nobody.command([*inside, "true"]), check=False).returncode:
        pytest.skip("this machine makes no user namespaces")
    with tempfile.TemporaryDirectory(prefix="lb-") as directory:
        os.chown(directory, nobody.UID, nobody.UID)
        command = nobody.command([*inside, sys.executable, "-c", code, directory])
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        os.chown(directory, 0, 0)
    assert done.stdout.split() == [str(nobody.UID), "None"]
