"""Snapshots on disk: whole or not at all, numbers never used twice."""

import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.machines import nobody
from support.values.snapshots import snapshot

from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot, SnapshotError, encode
from appliance.net.files import snapshots
from appliance.net.files.atomic_write import remove_scratch_files, write_atomically, write_whole
from appliance.net.files.degraded import Degraded, clear_degraded, read_degraded, write_degraded
from appliance.net.logging import log as logs
from appliance.wire.checksummed_json import checksummed
from appliance.wire.lines.control import AnswerProblem, ControlError

pytestmark = pytest.mark.sockets


def test_accepted_and_last_good_are_read_back(paths: Paths):
    """What was accepted and kept is what is read, from files that only their owner can read."""
    snapshots.accept(paths, snapshot(number=4))
    snapshots.keep_as_last_good(paths, snapshot(number=4))
    assert snapshots.read(paths.accepted) == snapshots.read(paths.last_good) == snapshot(number=4)
    assert snapshots.log_settings(paths.accepted) == snapshot(number=4).log
    assert paths.accepted.stat().st_mode & 0o777 == 0o600
    assert paths.last_good.stat().st_mode & 0o777 == 0o600


def test_what_is_written_three_times_is_encoded_once(paths: Paths, monkeypatch: pytest.MonkeyPatch):
    """A snapshot is proposed, accepted and kept; with 40,000 servers each encoding would take 30 ms."""
    encoded: list[int] = []

    def counting(one: Snapshot) -> bytes:
        encoded.append(one.number)
        return encode(one)

    monkeypatch.setattr(snapshots, "encode", counting)
    for number in (4, 5):
        one = snapshot(number=number)
        snapshots.propose(paths, one)
        snapshots.accept(paths, one)
        snapshots.keep_as_last_good(paths, one)
        written = {each.read_bytes() for each in (paths.snapshot(number), paths.accepted, paths.last_good)}
        assert written == {checksummed(encode(one))}
    assert encoded == [4, 5]


def test_the_content_of_a_snapshot_goes_with_it():
    """A process that no longer uses a snapshot does not keep the bytes of its file."""
    one, last = snapshot(number=4), snapshots.LastWritten()
    assert last.of(one) == last.content == checksummed(encode(one))
    del one
    assert last.content == b""


def test_no_file_is_no_snapshot(paths: Paths):
    """Before the first acceptance there is none, which is no error."""
    assert snapshots.read(paths.accepted) is None
    assert snapshots.log_settings(paths.accepted) is None


def test_a_damaged_file_is_an_error_with_its_name(paths: Paths):
    """Half a snapshot is not taken for one."""
    paths.accepted.write_bytes(b'{"number": 3')
    with pytest.raises(SnapshotError, match=r"accepted\.json"):
        snapshots.read(paths.accepted)
    assert snapshots.log_settings(paths.accepted) is None


@pytest.mark.parametrize("write", [write_atomically, write_whole])
def test_a_failed_write_leaves_the_old_content(paths: Paths, write: Callable[[Path, bytes], None]):
    """Where the new file cannot take the name, the old content stays and nothing is left beside it."""
    target = paths.runtime / "taken"
    target.mkdir()
    (target / "something").touch()
    with pytest.raises(OSError, match="taken"):
        write(target, b"new")
    assert [each.name for each in paths.runtime.iterdir()] == ["taken"]


@pytest.mark.programs
def test_a_directory_that_cannot_be_synced_has_the_new_content(tmp_path: Path):
    """Once the file has its name the write has happened, and is no failure."""
    tmp_path.chmod(0o300)  # no reading: it cannot be opened to be synced
    child = os.fork()
    if child == 0:
        with contextlib.suppress(OSError):
            _as_nobody(tmp_path)
            write_atomically(Path("file"), b"new")
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    tmp_path.chmod(0o700)
    assert (tmp_path / "file").read_bytes() == b"new"


def _as_nobody(directory: Path) -> None:
    """Become an ordinary user in a directory of its own, where this process is root."""
    os.chdir(directory)
    if os.getuid() == 0:
        os.chown(directory, nobody.UID, nobody.UID)
        os.setuid(nobody.UID)


def test_sameness_does_not_look_at_number_and_source():
    """Two snapshots that ask for the same are the same, whatever their number and file."""
    assert snapshots.same(snapshot(number=1, source="a"), snapshot(number=2, source="b"))
    assert not snapshots.same(snapshot(drain=1.0), snapshot(drain=2.0))


def test_a_number_is_never_used_twice(paths: Paths):
    """A proposal that was refused keeps its number, also over the pruning that follows."""
    snapshots.accept(paths, snapshot(number=4))
    number = snapshots.unused_number(paths, [snapshot(number=4), None])
    assert number == 5
    snapshots.propose(paths, replace(snapshot(), number=number))
    snapshots.prune(paths, 4)
    assert snapshots.unused_number(paths, [snapshot(number=4)]) == 6


def test_pruning_keeps_what_may_be_read(paths: Paths):
    """The accepted snapshot and the few before it stay, and of those after it the last."""
    for number in range(1, 30):
        snapshots.propose(paths, snapshot(number=number))
    paths.snapshot(3).unlink()
    (paths.snapshot(3) / "something").mkdir(parents=True)
    snapshots.prune(paths, 20)
    left = sorted(int(each.stem) for each in paths.snapshot(0).parent.glob("*.json"))
    assert left == [*range(12, 21), 29]
    assert paths.snapshot(3).with_name("3.json.damaged").is_dir()


def test_the_note_of_a_degraded_start(paths: Paths):
    """It is read as it was written, and gone after it is cleared, twice."""
    note = Degraded(since=1.5, problems=(AnswerProblem(message="no", path="api", line=3, column=1),))
    assert read_degraded(paths) is None
    write_degraded(paths, note)
    assert read_degraded(paths) == note
    clear_degraded(paths)
    clear_degraded(paths)
    assert read_degraded(paths) is None


@pytest.mark.programs
def test_readers_never_see_half_a_file(paths: Paths):
    """While it is written again and again, every read gives one of the snapshots whole."""
    snapshots.accept(paths, snapshot(number=0))
    child = os.fork()
    if child == 0:
        for number in range(200):
            snapshots.accept(paths, snapshot(number=number))
        os._exit(0)
    seen = set()
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        found = snapshots.read(paths.accepted)
        assert found is not None
        seen.add(found.number)
    assert len(seen) > 1


def test_what_a_command_names_is_read_or_the_answer(paths: Paths):
    """A proposal is found by its number; one that is missing or damaged is what the command answers."""
    snapshots.propose(paths, snapshot(number=4))
    assert snapshots.proposed(paths, 4) == snapshot(number=4)
    with pytest.raises(ControlError, match="no snapshot 5"):
        snapshots.proposed(paths, 5)
    paths.snapshot(6).write_bytes(b"{")
    with pytest.raises(ControlError, match=r"6\.json"):
        snapshots.proposed(paths, 6)


def test_an_accepted_snapshot_that_is_damaged_is_told(paths: Paths, capfd: pytest.CaptureFixture[str]):
    """A program that starts goes on without it, and its log says why."""
    log = logs.configure("vrrp", level="info", form="json")
    assert snapshots.accepted(paths, log) is None
    snapshots.accept(paths, snapshot(number=4))
    assert snapshots.accepted(paths, log) == snapshot(number=4)
    assert capfd.readouterr().out == ""
    paths.accepted.write_bytes(b"{")
    assert snapshots.accepted(paths, log) is None
    assert '"snapshot-unreadable"' in capfd.readouterr().out


def test_mode_and_group_come_with_the_content(paths: Paths):
    """There is no moment at which a file has its content, and cannot be read by whom it is for."""
    target = paths.runtime / "file"
    write_atomically(target, b"new", mode=0o644, group=os.getegid())
    assert target.stat().st_mode & 0o777 == 0o644
    assert target.stat().st_gid == os.getegid()


def test_what_need_not_be_on_the_disk_is_whole_too(paths: Paths):
    """It takes the place of the old content in one step, with its mode, and leaves nothing beside it."""
    target = paths.runtime / "file"
    target.write_bytes(b"old")
    write_whole(target, b"new", mode=0o640)
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in paths.runtime.iterdir()] == ["file"]


def test_what_a_power_cut_left_is_removed(paths: Paths):
    """That of another process, and neither an editor's file nor another file's."""
    for name in (".file.77", ".file.swp", ".other.77", "file"):
        (paths.runtime / name).touch()
    remove_scratch_files(paths.runtime / "file")
    assert sorted(each.name for each in paths.runtime.iterdir()) == [".file.swp", ".other.77", "file"]
