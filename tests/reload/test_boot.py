"""The first step of a start: directories, the lock, and which configuration is obeyed."""

import os
import pickle
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.model.paths import Paths
from appliance.net.files import snapshots, start_note
from appliance.net.files.degraded import read_degraded
from appliance.reload import boot

pytestmark = pytest.mark.sockets

_GOOD = """\
api: { frontends: { ready: { bind: ["127.0.0.1:9444"], respond: /haproxy_ready } } }
"""
_OTHER = _GOOD.replace("9444", "9454")


@pytest.fixture
def paths() -> Iterator[Paths]:
    """Give directories below a short path, as sockets need, and a file that is good."""
    with tempfile.TemporaryDirectory(prefix="lb-") as directory:
        root = Path(directory)
        made = Paths(config=root / "c.yaml", runtime=root / "run", state=root / "state")
        made.config.write_text(_GOOD)
        boot.make_directories(made)
        yield made


def started(paths: Paths) -> boot.Start:
    """Choose and write, as a start does."""
    start = boot.choose(paths)
    boot.write(paths, start)
    return start


def test_directories_are_their_owner_s(paths: Paths):
    """Both are made with mode 0700, and making them again is harmless."""
    boot.make_directories(paths)
    assert paths.runtime.stat().st_mode & 0o777 == 0o700
    assert paths.state.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_cannot_be(paths: Paths):
    """A file in the way is an error that names the path."""
    with pytest.raises(boot.BootError, match=r"c\.yaml/run"):
        boot.make_directories(Paths(runtime=paths.config / "run", state=paths.state))


@pytest.mark.parametrize("which", ["runtime", "state"])
def test_a_directory_that_others_can_write_to(paths: Paths, which: str):
    """Whoever writes there runs commands as us: it is refused, with what is wrong and where."""
    open_to_all = getattr(paths, which)
    open_to_all.chmod(0o777)
    with pytest.raises(boot.BootError, match=f"{open_to_all}: refused: .* is writable by others"):
        boot.make_directories(paths)


def test_a_runtime_directory_that_is_too_long(tmp_path: Path):
    """Sockets would not fit below it, and the error says so before anything is made."""
    runtime = tmp_path / ("x" * 100)
    with pytest.raises(boot.BootError, match="sockets need room"):
        boot.make_directories(Paths(runtime=runtime, state=tmp_path))
    assert not runtime.exists()


def test_one_appliance_in_a_directory(paths: Paths):
    """The lock is had once, survives exec, and is free again when it is closed."""
    held = boot.lock(paths)
    assert os.get_inheritable(held)
    with pytest.raises(boot.BootError, match="runs here already"):
        boot.lock(paths)
    os.close(held)
    os.close(boot.lock(paths))


def test_the_first_start_is_number_one(paths: Paths):
    """The operator's file becomes the accepted snapshot and the last-good copy."""
    start = started(paths)
    assert start.snapshot.number == 1
    assert snapshots.read(paths.accepted) == snapshots.read(paths.last_good) == start.snapshot
    assert snapshots.read(paths.snapshot(1)) == start.snapshot
    assert pickle.loads(pickle.dumps(start)) == start  # noqa: S301  # as a child sends it to its parent
    assert start_note.read(paths) == start.note
    assert start.note is not None
    assert start.note.snapshot == 1


def test_the_same_again_keeps_its_number(paths: Paths):
    """A restart with an unchanged file is no new configuration, also after a reboot."""
    started(paths)
    assert started(paths).snapshot.number == 1
    paths.accepted.unlink()
    paths.snapshot(1).unlink()
    assert started(paths).snapshot.number == 1


def test_another_file_has_a_new_number(paths: Paths):
    """A changed file counts on from what was accepted last, also after a reboot."""
    started(paths)
    paths.config.write_text(_OTHER)
    assert started(paths).snapshot.number == 2
    paths.accepted.unlink()
    paths.config.write_text(_GOOD)
    assert started(paths).snapshot.number == 3


def test_a_broken_file_starts_the_last_good(paths: Paths):
    """With errors in the file the copy is obeyed, and the note holds every error until a good start."""
    good = started(paths).snapshot
    paths.config.write_text("api: 1\nnonsense: 2\n")
    start = started(paths)
    assert start.snapshot == good
    note = read_degraded(paths)
    assert note is not None
    assert note.problems == start.errors
    assert len(note.problems) == 2
    paths.config.write_text(_GOOD)
    started(paths)
    assert read_degraded(paths) is None


def test_neither_is_an_end_with_every_error(paths: Paths):
    """Without a copy nothing is started, and every error is told."""
    paths.config.write_text("api: 1\nnonsense: 2\n")
    with pytest.raises(boot.BootError) as caught:
        boot.choose(paths)
    assert [each.line for each in caught.value.problems] == [1, 2]


def test_a_damaged_copy_is_as_good_as_none(paths: Paths):
    """Half a copy does not hide what is wrong with the file, and does not stop a good one."""
    paths.last_good.write_bytes(b"{")
    assert started(paths).snapshot.number == 1
    paths.last_good.write_bytes(b"{")
    paths.accepted.unlink()
    paths.config.write_text("api: 1\n")
    with pytest.raises(boot.BootError):
        boot.choose(paths)


def test_a_copy_that_was_not_kept_does_not_turn_back_time(paths: Paths):
    """With a broken file, what was accepted last is obeyed, and is the copy again."""
    started(paths)
    older = paths.last_good.read_bytes()
    paths.config.write_text(_OTHER)
    accepted = started(paths).snapshot
    paths.config.write_text("api: 1\n")
    for left in (older, b"{"):
        paths.last_good.write_bytes(left)
        assert started(paths).snapshot == accepted
        assert snapshots.read(paths.last_good) == accepted


def test_a_full_disk_is_an_error(paths: Paths):
    """Where what programs obey cannot be written the reason names the file."""
    start = boot.choose(paths)
    paths.runtime.rmdir()
    with pytest.raises(boot.BootError, match=r"snapshots: No such file or directory"):
        boot.write(paths, start)


def test_a_state_directory_that_takes_nothing_is_a_start(paths: Paths):
    """The last-good copy is disposable: what is not kept is returned, with its name and the reason."""
    start = boot.choose(paths)
    paths.state.rmdir()
    (said,) = boot.write(paths, start)
    assert said.message == f"{paths.last_good}: No such file or directory"
    assert snapshots.read(paths.accepted) == start.snapshot


def test_stale_sockets_go(paths: Paths):
    """What a killed supervisord left is removed, twice."""
    paths.supervisor_socket.touch()
    paths.supervisor_socket.with_name("supervisor.sock.123").touch()
    boot.remove_stale_sockets(paths)
    boot.remove_stale_sockets(paths)
    assert list(paths.runtime.iterdir()) == []


def test_a_first_file_that_somebody_else_writes_is_waited_for(paths: Paths):
    """Nothing is accepted but how to wait; it is no last-good copy, and the next start waits again."""
    waiting = replace(paths, haproxy=(paths.config.parent / "haproxy.cfg",))
    paths.config.write_text("reload: { sockets: [/run/lb-test.sock] }\n")
    for _ in range(2):
        start = started(waiting)
        assert start.snapshot.awaited is True
        assert start.snapshot.reload.sockets == ("/run/lb-test.sock",)
        assert start.errors[0].message == f"{waiting.haproxy[0]}: cannot be read: No such file or directory"
        assert not paths.last_good.exists()
        note = read_degraded(paths)
        assert note is not None
        assert note.problems == start.errors


def test_what_was_accepted_once_is_not_waited_for(paths: Paths):
    """With a last-good copy the appliance serves, whoever is to write the next file."""
    first = started(paths).snapshot
    paths.config.unlink()
    start = started(replace(paths, reload_sockets=(paths.runtime / "a.sock",)))
    assert (start.snapshot, start.snapshot.awaited) == (first, False)
    assert start.errors
