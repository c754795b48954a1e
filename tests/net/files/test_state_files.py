"""Files of ours, whatever has become of them: read, set aside, written again."""

import os
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

import pytest
from support.fuzzing.damage import SPOILS
from support.values.snapshots import snapshot

from appliance.guest.record import Record
from appliance.health import kept_by_operator
from appliance.health.kept_by_operator import STATES, OperatorOverridesError
from appliance.model.guest.placement import Placed
from appliance.model.paths import Paths
from appliance.model.server_states import AdminState
from appliance.model.snapshot.snapshot import SnapshotError
from appliance.net.boards import heartbeats
from appliance.net.boards.board_layout import BoardError
from appliance.net.boards.board_reader import BoardReader
from appliance.net.boards.board_writer import BoardWriter
from appliance.net.files import lock_files, snapshots, state_files
from appliance.net.files.degraded import (
    Degraded,
    clear_degraded,
    degraded_path,
    read_degraded,
    write_degraded,
)
from appliance.net.files.state_files import FileUnusable
from appliance.net.netlink.address_record import AddressRecord
from appliance.proxy.generation_numbers import GenerationNumbers

pytestmark = pytest.mark.sockets

_READER: Final = 9445
every_damage = pytest.mark.parametrize("damage", SPOILS)


@every_damage
def test_a_damaged_snapshot_is_an_error_and_written_again(paths: Paths, damage: str):
    """Whatever became of it, reading raises its one error or finds nothing, and writing heals it."""
    for path, write in (
        (paths.accepted, snapshots.accept),
        (paths.last_good, snapshots.keep_as_last_good),
        (paths.snapshot(7), snapshots.propose),
    ):
        write(paths, snapshot(number=7))
        SPOILS[damage](path)
        if damage == "dangling":
            assert snapshots.read(path) is None
        else:
            with pytest.raises(SnapshotError, match=path.name):
                snapshots.read(path)
        write(paths, snapshot(number=7))
        assert snapshots.read(path) == snapshot(number=7)


@every_damage
def test_a_snapshot_that_is_lost_is_found_in_its_copies(paths: Paths, damage: str):
    """A worker that starts has its configuration as long as one of three files is whole."""
    for write in (snapshots.accept, snapshots.keep_as_last_good, snapshots.propose):
        write(paths, snapshot(number=7))
    for path in (paths.snapshot(7), paths.accepted):
        SPOILS[damage](path)
        assert snapshots.numbered(paths, 7) == snapshot(number=7)


@every_damage
def test_damaged_operator_states_are_an_error_and_written_again(tmp_path: Path, damage: str):
    """No server is taken out of maint by a flipped bit without a word."""
    path, states = tmp_path / "operator-states.json", {("masters", "a"): AdminState.MAINT}
    kept_by_operator.save(path, STATES, states)
    SPOILS[damage](path)
    if damage == "dangling":
        assert kept_by_operator.load(path, STATES) == {}
    elif damage == "cut-by-one":  # the end of the last line alone
        with pytest.raises(OperatorOverridesError):
            kept_by_operator.load(path, STATES)
    else:
        with pytest.raises(OperatorOverridesError, match=str(path)):
            kept_by_operator.load(path, STATES)
    kept_by_operator.save(path, STATES, states)
    assert kept_by_operator.load(path, STATES) == states


@every_damage
def test_a_damaged_lock_locks_and_numbers_go_on(tmp_path: Path, damage: str):
    """A lock file is a lock whatever it holds, and a number that cannot be right is none."""
    path = tmp_path / "proxy-api.lock"
    first = GenerationNumbers(path)
    assert first.next() == 1
    first.close()
    SPOILS[damage](path)
    numbers = GenerationNumbers(path)
    assert 1 <= numbers.next() < 2**32
    assert lock_files.hold(path) is None
    numbers.close()


@every_damage
def test_a_damaged_board_is_an_error_and_replaced(tmp_path: Path, damage: str):
    """A reader has its one error or what was published; a writer publishes."""
    path = tmp_path / "health.board"
    writer = BoardWriter(path)
    writer.publish(b"one")
    writer.close()
    SPOILS[damage](path)
    try:
        with BoardReader(path) as reader:
            assert reader.read() == b"one"
    except BoardError as error:
        assert str(path) in str(error)  # noqa: PT017  # one of two endings
    writer = BoardWriter(path)
    writer.publish(b"two")
    with BoardReader(path) as reader:
        assert reader.read() == b"two"
    writer.close()


@every_damage
def test_a_damaged_heartbeat_is_none_and_beats_again(tmp_path: Path, damage: str):
    """Whoever looks for it does not wait for it, and the next life is seen."""
    path = tmp_path / "health.heartbeat"
    heartbeats.prepare(path)
    SPOILS[damage](path)
    heartbeats.read(path)
    heartbeat = heartbeats.Heartbeat(path)
    heartbeat.beat(1.0)
    found = heartbeats.read(path)
    assert found is not None
    assert (found.pid, found.beat) == (os.getpid(), 1_000_000_000)
    heartbeat.close()


@every_damage
def test_a_damaged_record_of_addresses_is_empty(tmp_path: Path, damage: str):
    """Nothing is removed from an interface because of a file that cannot be understood."""
    path = tmp_path / "owned-addresses.json"
    owned = AddressRecord(path)
    owned.add([("ens192", "10.0.0.200/24")])
    SPOILS[damage](path)
    again = AddressRecord(path)
    assert all(len(each) == 2 for each in again.entries)
    again.add([("ens192", "10.0.0.201/24")])
    assert ("ens192", "10.0.0.201/24") in AddressRecord(path).entries


@every_damage
def test_a_damaged_record_of_a_virtual_machine_is_none(tmp_path: Path, damage: str):
    """What a machine was given last is then not known, and kept again."""
    record = Record(tmp_path)
    placed = Placed(properties="a" * 64, yaml="b" * 64)
    record.keep_placed(placed)
    record.keep_environment(b"<Environment/>")
    (tmp_path / "var/lib/appliance-guest/intended.json").write_bytes(b"{}")
    for name in ("record.json", "environment.xml"):
        SPOILS[damage](tmp_path / "var/lib/appliance-guest" / name)
    record.placed()
    record.environment()
    record.keep_placed(placed)
    record.keep_environment(b"<Environment/>")
    assert record.placed() == placed
    assert record.environment() == b"<Environment/>"


@every_damage
def test_a_damaged_note_is_none(paths: Paths, damage: str):
    """The note of a degraded start is gone or as it was, and can be written and removed."""
    note = Degraded(since=1.0, problems=())
    write_degraded(paths, note)
    SPOILS[damage](degraded_path(paths))
    read_degraded(paths)
    clear_degraded(paths)
    assert read_degraded(paths) is None
    write_degraded(paths, note)
    assert read_degraded(paths) == note


UNUSUAL = ["directory", "fifo", "socket", "device"]


@pytest.mark.parametrize("damage", UNUSUAL)
def test_only_regular_files_are_read(tmp_path: Path, damage: str):
    """What is no file is named, and not opened: nothing waits for a FIFO's writer."""
    path = tmp_path / "file"
    path.touch()
    SPOILS[damage](path)
    with pytest.raises(FileUnusable, match=damage.upper() if damage == "fifo" else damage):
        state_files.read(path)


def test_a_file_above_the_limit_is_not_read(tmp_path: Path):
    """Neither one that says its length, nor one that grows."""
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert state_files.read(path, limit=5) == b"12345"
    with pytest.raises(FileUnusable, match="larger than 4 bytes"):
        state_files.read(path, limit=4)
    with pytest.raises(FileUnusable, match="larger than 1 bytes"):
        state_files.read(Path("/proc/self/status"), limit=1)


def test_a_small_file_takes_little_memory(tmp_path: Path):
    """`vrrp` reads with locked memory, of which the kernel fills each byte that is asked for."""
    path = tmp_path / "small"
    path.write_bytes(b"x" * 5000)
    tracemalloc.start()
    try:
        assert state_files.read(path) == b"x" * 5000
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_file_that_says_no_length_is_read_to_its_end():
    """Those of /proc do not, and one that grows says too little."""
    path = Path("/proc/kallsyms")
    whole = path.read_bytes()
    assert len(whole) > 1 << 16
    assert state_files.read(path) == whole


def meanwhile(monkeypatch: pytest.MonkeyPatch, *writes: Callable[[], object]) -> None:
    """Have somebody write the file each time that it has been read, before it is closed."""
    bounded, left = state_files._bounded, list(writes)

    def read(file: BinaryIO, *, expected: int, limit: int) -> bytes:
        data = bounded(file, expected=expected, limit=limit)
        if left:
            left.pop(0)()
        return data

    monkeypatch.setattr(state_files, "_bounded", read)


def overwrite(path: Path, data: bytes, *, second: int) -> None:
    """Write as many bytes as there were, at a time of its own: the clock may stand still for a while."""
    path.write_bytes(data)
    os.utime(path, (second, second))


def test_a_file_that_grows_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What was read first is half of it."""
    path = tmp_path / "file"
    path.write_bytes(b"half")
    meanwhile(monkeypatch, partial(path.write_bytes, b"half and half"))
    assert state_files.read(path) == b"half and half"


def test_a_file_that_is_overwritten_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its length is the same, and its time is not."""
    path = tmp_path / "file"
    overwrite(path, b"one", second=1)
    meanwhile(monkeypatch, partial(overwrite, path, b"two", second=2))
    assert state_files.read(path) == b"two"


def test_a_file_that_is_written_without_end_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nobody waits for the writer: the reader is told why, and asks later."""
    path = tmp_path / "file"
    overwrite(path, b"0", second=0)
    meanwhile(monkeypatch, *(partial(overwrite, path, b"%d" % each, second=each) for each in range(1, 9)))
    with pytest.raises(FileUnusable, match="is written while it is read"):
        state_files.read(path)


def test_a_file_that_is_replaced_while_it_is_read_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A rename leaves the open file as it was; the next look has the other one."""
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_bytes(b"one")
    other.write_bytes(b"another one")
    meanwhile(monkeypatch, partial(other.replace, path))
    assert state_files.read(path) == b"one"
    assert state_files.read(path) == b"another one"


def test_a_link_whose_folder_goes_on_the_way_is_followed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A swap moves `..data` and removes the folder before: the file is not missing for a moment."""
    path, data = tmp_path / "token", tmp_path / "..data"
    for name in ("..first", "..second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / path.name).write_text(name)
    path.symlink_to(f"..data/{path.name}")
    data.symlink_to("..first")
    (tmp_path / "..next").symlink_to("..second")
    unusual, looks = state_files.unusual, []

    def looked(at: Path) -> str:
        """Look; the file goes right after the first time, as for who is on the way into the former folder."""
        looks.append(at)
        if len(looks) == 2:
            (tmp_path / "..next").replace(data)
        found = unusual(at)
        if len(looks) == 1:
            (tmp_path / "..first" / path.name).unlink()
        return found

    monkeypatch.setattr(state_files, "unusual", looked)
    assert state_files.read(path) == b"..second"


@pytest.mark.needs(root=True)
def test_a_file_that_its_reader_may_not_read_is_told_with_the_reader(tmp_path: Path):
    """A container's user does not see root's file of mode 0600: the reason names the user that has to."""
    path = tmp_path / "appliance.yaml"
    path.touch(mode=0o600)
    os.seteuid(_READER)
    try:
        with pytest.raises(FileUnusable, match=f"^Permission denied for user {_READER}$"):
            state_files.read(path)
    finally:
        os.seteuid(0)


def test_what_is_set_aside_is_kept_and_bounded(tmp_path: Path):
    """Nine are kept; after that the last one is overwritten, and the name is free every time."""
    path = tmp_path / "accepted.json"
    for number in range(12):
        path.write_text(str(number))
        assert state_files.set_aside(path) is not None
        assert not path.exists()
    kept = state_files.found_aside(tmp_path)
    assert [each.read_text() for each in kept] == [*map(str, range(8)), "11"]


def test_what_cannot_be_set_aside_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """On a read-only file system a damaged file stays, which is no error."""

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    refusals: list[Callable[..., None]] = [refuse]
    monkeypatch.setattr(os, "rename", refusals[0])
    monkeypatch.setattr(os, "replace", refusals[0])
    path = tmp_path / "file"
    path.touch()
    assert state_files.set_aside(path) is None
    assert path.exists()
