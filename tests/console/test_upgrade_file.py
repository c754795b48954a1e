"""`appliance upgrade FILE` and `--back`, where nobody runs: what is chosen, removed, and refused."""

import hashlib
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from support.processes.waiting import wait_until
from support.supervisor import releases
from support.supervisor.release_key import ReleaseKey

from appliance.console import releases as releases_of_console
from appliance.console import upgrade
from appliance.console.command import main
from appliance.console.releases import Trust
from appliance.net.releases import installation, signing
from appliance.net.releases.release_folders import ReleaseFolders

pytestmark = [pytest.mark.sockets, pytest.mark.needs(root=True)]

_OLD, _OLDER, _OLDEST = "lb-appliance-3", "lb-appliance-2", "lb-appliance-1"

_IN_A_PLACE = """
from pathlib import Path
from appliance.console import releases as releases_of_console
from appliance.console import upgrade
from appliance.console.command import main
from appliance.net.releases.release_folders import ReleaseFolders
from appliance.net.releases import signing
upgrade.ReleaseFolders = lambda: ReleaseFolders(Path({place!r}))
signing.packaged = lambda _: Path({signers!r})
main(["upgrade", "-", "--sha256", {checksum!r}, *{options!r}, "--runtime-dir", "/nonexistent"])
"""


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReleaseFolders:
    """Three releases in a place of their own: one that starts, the former one, and an older one."""
    made = ReleaseFolders(tmp_path / "opt")
    for name in (_OLDEST, _OLDER, _OLD):
        made.command(name).parent.mkdir(parents=True)
        made.command(name).touch()
        made.choose(name)
    monkeypatch.setattr(upgrade, "ReleaseFolders", lambda: made)
    return made


def _upgrade(tmp_path: Path, *arguments: str) -> Result:
    shared = ["--runtime-dir", str(tmp_path / "run"), "--state-dir", str(tmp_path / "state")]
    return CliRunner().invoke(main, [*shared, "upgrade", *arguments])


def test_back_where_nobody_runs(folders: ReleaseFolders, tmp_path: Path):
    """The former release starts next, the way back is to the other one then, and others are removed."""
    done = _upgrade(tmp_path, "--back")
    assert done.exit_code == 0, done.output
    assert "No appliance runs here" in done.output
    assert f"{_OLDER} starts from now on; {_OLD} is kept for --back." in done.output
    assert f"Removed: {_OLDEST}." in done.output
    assert (folders.current, folders.former) == (_OLDER, _OLD)


@pytest.mark.parametrize("arguments", [("--back", "file"), ("--sha256", "0" * 64), ("--unsigned", "--back")])
def test_misuse(folders: ReleaseFolders, tmp_path: Path, arguments: tuple[str, ...]):
    """What does not go together ends with 2."""
    assert _upgrade(tmp_path, *arguments).exit_code == 2
    assert folders.current == _OLD


def _archive(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "release.tar.gz"
    path.write_bytes(data)
    return str(path)


@pytest.mark.slow("makes a release for each damage")
@pytest.mark.programs
def test_what_cannot_be_installed_leaves_nothing(folders: ReleaseFolders, tmp_path: Path):
    """No archive, one without what it should hold, and one of a release that is there already."""
    before = sorted(folders.place.iterdir())
    unlocked = releases.archive({"requirements.txt": b"click==0 --hash=sha256:0\n"})
    for data, reason, step in (
        (b"no archive", "damaged, or no archive", "copy or make the archive again"),
        (releases.compressed(unlocked), "click", "copy or make the archive again"),
        (releases.compressed(releases.archive(name=_OLD)), f"{_OLD} is installed already", "none"),
        (
            releases.compressed(releases.archive(name=_OLDER)),
            f"{_OLDER} is installed already",
            "appliance upgrade --back",
        ),
    ):
        done = _upgrade(tmp_path, _archive(tmp_path, data), "--unsigned")
        assert (done.exit_code, reason in done.output) == (1, True), done.output
        assert f"Next: {step}" in done.output
        assert "nothing was changed" in done.output
    assert sorted(folders.place.iterdir()) == before


@pytest.mark.parametrize("kind", ["cp310-cp310-linux_s390x", "cp399-cp399-manylinux_2_17_x86_64"])
def test_an_archive_for_another_python(kind: str, folders: ReleaseFolders, tmp_path: Path):
    """It is named, with the archive to take, before anything is installed."""
    data = releases.compressed(releases.archive({f"lb_appliance-9.9.9-{kind}.whl": b"PK"}))
    done = _upgrade(tmp_path, _archive(tmp_path, data), "--unsigned")
    assert (done.exit_code, f"it is for {kind[:5]} and" in done.output) == (1, True), done.output
    assert f"cp{sys.version_info.major}{sys.version_info.minor}-" in done.output
    assert not (folders.place / releases.NAME).exists()


@pytest.mark.programs
def test_a_release_that_runs_is_left_as_it_is(folders: ReleaseFolders, tmp_path: Path):
    """Its command was killed before it was chosen: the next one says so, instead of emptying its folder."""
    python = folders.command(releases.NAME).with_name("python")
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    with subprocess.Popen([python, "-c", "input()"], stdin=subprocess.PIPE) as running:
        wait_until(lambda: folders.runs(releases.NAME), what="it runs")
        done = _upgrade(tmp_path, _archive(tmp_path, releases.compressed(releases.archive())), "--unsigned")
        running.kill()
    assert (done.exit_code, f"{releases.NAME} runs already" in done.output) == (1, True), done.output
    assert f"Next: ln -sfn {releases.NAME} {folders.place}/appliance" in done.output
    assert python.exists()


def test_a_full_disk(folders: ReleaseFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is needed is asked for before anything is unpacked."""
    monkeypatch.setattr(installation, "_ROOM", 1 << 50)
    done = _upgrade(tmp_path, _archive(tmp_path, releases.compressed(releases.archive())), "--unsigned")
    assert (done.exit_code, "MB are needed" in done.output) == (1, True), done.output
    assert not (folders.place / releases.NAME).exists()


def test_another_kind_of_installation(folders: ReleaseFolders, tmp_path: Path):
    """Where no link says what starts, nothing is installed."""
    (folders.place / "appliance").unlink()
    done = _upgrade(tmp_path, _archive(tmp_path, releases.compressed(releases.archive())), "--unsigned")
    assert (done.exit_code, "is no link to a release" in done.output) == (1, True)
    assert not (folders.place / releases.NAME).exists()


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReleaseKey:
    """The key that the installed release knows."""
    made = ReleaseKey(tmp_path / "key")
    monkeypatch.setattr(signing, "packaged", lambda _: made.signers)
    return made


@pytest.mark.programs
@pytest.mark.needs("ssh")
@pytest.mark.promise("docs/releases.md", "an upgrade accepts what a key of the installed release has signed")
def test_only_a_signed_archive_is_accepted(folders: ReleaseFolders, key: ReleaseKey, tmp_path: Path):
    """Unsigned, by another key, changed afterwards: each says why and what to do, and changes nothing.

    The signed one is refused for what is in it: it has been looked at.
    """
    archive = Path(_archive(tmp_path, releases.compressed(releases.archive(name=_OLD))))
    before = sorted(folders.place.iterdir())

    def refused(reason: str) -> None:
        done = _upgrade(tmp_path, str(archive))
        assert (done.exit_code, reason in done.output) == (1, True), done.output
        if "installed already" not in reason:
            assert "Next: " in done.output
            assert "--unsigned accepts it" in done.output
        assert "nothing was changed" in done.output
        assert sorted(folders.place.iterdir()) == before

    refused("it is not signed")
    ReleaseKey(tmp_path / "other").sign(archive)
    refused("does not know: SHA256:")
    key.sign(archive)
    refused(f"{_OLD} is installed already")
    archive.write_bytes(releases.compressed(releases.archive(name=_OLDER)))
    refused("of other content")


@pytest.mark.programs
@pytest.mark.needs("ssh")
def test_an_archive_on_standard_input(folders: ReleaseFolders, key: ReleaseKey, tmp_path: Path):
    """Its signature comes before it; it is compared with its checksum before anything of it is looked at."""
    data = releases.compressed(releases.archive(name=_OLD))
    signature = key.sign(Path(_archive(tmp_path, data))).read_bytes()
    right = hashlib.sha256(data).hexdigest()
    for content, checksum, options, reason in (
        (signature + data, "0" * 64, [], "another one"),
        (data, right, [], "it is not signed"),
        (signature[:-20], right, [], "its signature: it does not end"),
        (signature + data, right, [], "installed already"),
        (data, right, ["--unsigned"], "installed already"),
    ):
        program = _IN_A_PLACE.format(
            place=str(folders.place), checksum=checksum, signers=str(key.signers), options=options
        )
        done = subprocess.run(
            [sys.executable, "-c", program], input=content, capture_output=True, check=False, timeout=60
        )
        assert (done.returncode, reason in done.stderr.decode()) == (1, True), done.stderr


def test_one_whose_connection_is_lost_is_upgraded(
    folders: ReleaseFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What cannot be said after the installation does not keep the release from taking over."""

    def lost(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(installation, "install", lambda *_, **__: _OLDER)
    monkeypatch.setattr(click, "echo", lost)
    assert (
        releases_of_console.installed(tmp_path / "archive", folders, checksum=None, trust=Trust.ANY) == _OLDER
    )
