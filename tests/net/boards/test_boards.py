"""Boards, read by other processes than the one that writes."""

import hashlib
import mmap
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path

import pytest

from appliance.net.boards import board_writer
from appliance.net.boards.board_layout import BoardError, Published
from appliance.net.boards.board_reader import BoardReader
from appliance.net.boards.board_writer import BoardWriter

pytestmark = pytest.mark.sockets

# Publishes payloads of changing length that carry their own checksum, without pause, until it is killed.
WRITER = """
import hashlib, sys
from pathlib import Path
from appliance.net.boards.board_writer import BoardWriter
board = BoardWriter(Path(sys.argv[1]), capacity=int(sys.argv[2]))
number = 0
while True:
    body = number.to_bytes(8, "big") * (1 + number * 37 % 2000)
    board.publish(hashlib.sha256(body).digest() + body, changed=number % 3 == 0)
    if not number:
        print("writing", flush=True)
    number += 1
"""

# Grows beyond what the file system has.
FULL = """
import sys
from pathlib import Path
from appliance.net.boards.board_reader import BoardReader
from appliance.net.boards.board_writer import BoardWriter
path = Path(sys.argv[1]) / "health.board"
board = BoardWriter(path)
try:
    board.publish(bytes(500_000))
except OSError as error:
    board.publish(b"small")
    print(error.errno, BoardReader(path).read())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the test's board is."""
    return tmp_path / "health.board"


@pytest.fixture
def writer(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Return a process that publishes as fast as it can, into a file that it outgrows."""
    child = subprocess.Popen([sys.executable, "-c", WRITER, path, "64"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"writing\n"
    yield child
    child.kill()
    child.wait()
    child.stdout.close()


def number_of(payload: bytes) -> int:
    """Return a payload's number; fails when the payload is torn."""
    checksum, body = payload[:32], payload[32:]
    assert hashlib.sha256(body).digest() == checksum
    return int.from_bytes(body[:8], "big")


@pytest.mark.programs
def test_a_reader_never_sees_a_torn_payload(path: Path, writer: subprocess.Popen[bytes]):
    """While another process publishes without pause, every read is whole, and none is older than the last."""
    with BoardReader(path) as reader:
        last, seen, reads = -1, set[int](), 0
        while reads < 20_000 or len(seen) <= 100:
            reads += 1
            number = number_of(reader.read())
            assert number >= last
            last = number
            seen.add(number)
            assert writer.poll() is None


@pytest.mark.programs
def test_a_writer_killed_at_any_moment_leaves_a_whole_payload(path: Path):
    """After each of twenty kill -9 the board reads whole, and the next writer goes on."""
    for round_number in range(20):
        child = subprocess.Popen([sys.executable, "-c", WRITER, path, "64"], stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == b"writing\n"
        with BoardReader(path) as reader:
            start = reader.sequence
            while reader.sequence < start + 10 + 31 * round_number:
                number_of(reader.read())
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
        with BoardReader(path) as reader:
            assert number_of(reader.read()) > 0


class Poll:
    """A reader that does what a worker does at each tick: it reads anew only where `changes` says so."""

    def __init__(self, reader: BoardReader) -> None:
        self._reader = reader
        self.seen = reader.published()

    def __call__(self) -> bytes:
        """Look; return what is known now."""
        if self._reader.changes != self.seen.changes:
            self.seen = self._reader.published()
        return self.seen.payload


class Stores:
    """Between a writer and its mapping: each store is handed to `store`, which makes it or keeps it."""

    def __init__(self, target: mmap.mmap | memoryview, store: Callable[[Callable[[], None]], None]) -> None:
        self._target = target
        self._store = store

    def __setitem__(self, place: int | slice, value: bytes | int) -> None:
        target = self._target
        self._store(lambda: target.__setitem__(place, value))  # type: ignore[index]  # either's own place


def intercept(board: BoardWriter, store: Callable[[Callable[[], None]], None]) -> None:
    """Let a writer's stores go through `store` from now on."""
    board._map = Stores(board._map, store)
    board._words = Stores(board._words, store)


@pytest.mark.parametrize("stop", range(4))
def test_a_change_is_not_missed_by_a_look_between_two_stores(path: Path, stop: int):
    """A reader looks while the writer stands after any of its stores, and knows the change afterwards."""
    board = BoardWriter(path)
    board.publish(b"up", changed=True)
    made = []
    with BoardReader(path) as reader:
        poll = Poll(reader)

        def store(make: Callable[[], None]) -> None:
            if len(made) == stop:
                assert poll() in {b"up", b"down"}
            make()
            made.append(make)

        intercept(board, store)
        board.publish(b"down", changed=True)
        if stop == len(made):
            poll()
        assert (poll(), len(made)) == (b"down", 3)


ORDERS = [order for order in permutations(range(6)) if order.index(2) < order.index(5)]
"""Every order in which the stores of two publishes can be seen; those to one place keep theirs."""


def test_a_change_is_not_missed_in_whatever_order_stores_are_seen(path: Path):
    """Two publishes whose stores a reader sees in any order never mix, never go back, and are not missed.

    An arm64 processor may show them so.
    """
    for order in ORDERS:
        board = BoardWriter(path)
        board.publish(b"1 up", changed=True)
        kept: list[Callable[[], None]] = []
        with BoardReader(path) as reader:
            poll = Poll(reader)
            intercept(board, kept.append)
            board.publish(b"2 down", changed=True)
            board.publish(b"3 maintenance", changed=True)
            seen = [b"1 up"]
            for number in order:
                kept[number]()
                seen.append(_glance(poll) or seen[-1])
            assert seen == sorted(seen)
            assert set(seen) <= {b"1 up", b"2 down", b"3 maintenance"}
            assert (seen[-1], poll()) == (b"3 maintenance", b"3 maintenance")


def _glance(poll: Poll) -> bytes | None:
    """Look as a worker does, which goes on with what it has where the half is not whole yet."""
    try:
        return poll()
    except BoardError:
        return None


def test_a_second_writer_goes_on_where_the_first_ended(path: Path):
    """A restarted writer leaves the last payload readable, and a reader that was there follows it."""
    BoardWriter(path).publish(b"first", changed=True)
    with BoardReader(path) as reader:
        first = reader.published()
        second = BoardWriter(path)
        assert reader.published() == first == Published(b"first", reader.changes)
        second.publish(b"second", changed=True)
        assert reader.published() == Published(b"second", first.changes + 1)


def test_changes_count_only_what_is_marked(path: Path):
    """`changes` moves with the publishes that were marked and `sequence` with all of them."""
    board = BoardWriter(path)
    with BoardReader(path) as reader:
        before, changes = reader.sequence, reader.changes
        board.publish(b"a")
        board.publish(b"b", changed=True)
        board.publish(b"c")
        assert (reader.changes - changes, reader.sequence - before) == (1, 3)


def test_a_board_that_was_removed_is_left_for_the_new_one(path: Path):
    """Where the name was removed with its directory nothing says so in the file: the reader looks itself.

    What the new writer counts is never what the reader knows, as it would take it for nothing new.
    """
    BoardWriter(path).publish(b"old", changed=True)
    with BoardReader(path) as reader:
        known = reader.changes
        path.unlink()
        reader.follow()
        assert reader.read() == b"old"
        BoardWriter(path).publish(b"new", changed=True)
        reader.follow()
        assert reader.changes != known
        assert reader.read() == b"new"


DAMAGED = [
    pytest.param(8, b"\xff" * 8, id="pointer"),
    pytest.param(64, b"\xff" * 8, id="number of the half"),
    pytest.param(72, b"\xff" * 8, id="changes"),
    pytest.param(80, b"\xff" * 8, id="length"),
    pytest.param(88, b"\xff" * 8, id="checksum"),
    pytest.param(96, b"\xff", id="payload"),
]


@pytest.mark.parametrize(("place", "damage"), DAMAGED)
def test_a_damaged_board_is_an_error_and_is_replaced(path: Path, place: int, damage: bytes):
    """A byte that is not the writer's is found; the next writer starts anew, and readers follow it."""
    BoardWriter(path).publish(b"whole", changed=True)
    with BoardReader(path) as reader:
        with path.open("r+b") as file:
            os.pwrite(file.fileno(), damage, place)
        with pytest.raises(BoardError, match=r"health\.board: damaged"):
            reader.read()
        BoardWriter(path).publish(b"again", changed=True)
        assert reader.read() == b"again"


@pytest.mark.parametrize("size", [64, 100, 128, 191])
def test_a_board_that_was_cut_is_refused(path: Path, size: int):
    """A file too short for its halves is no board, and one that is shorter than it was reads as damaged."""
    BoardWriter(path).publish(b"whole" * 10)
    os.truncate(path, size)
    with pytest.raises(BoardError, match=r"health\.board"):
        BoardReader(path).read()


def test_a_payload_larger_than_the_file_moves_readers(path: Path):
    """A payload that does not fit gets a larger file, and readers of the old one find it."""
    board = BoardWriter(path, capacity=16)
    with BoardReader(path) as reader:
        board.publish(b"x" * 1000)
        assert reader.read() == b"x" * 1000
        board.publish(b"y")
        assert reader.read() == b"y"
        assert reader.capacity == 1000


@pytest.mark.parametrize("name", ["health.board", "health.board.new"])
def test_a_file_that_cannot_be_made_larger_goes_on(path: Path, name: str):
    """After a failure early or late in the making, payloads that fit reach the readers, and later others."""
    board = BoardWriter(path, capacity=16)
    with BoardReader(path) as reader:
        board.publish(b"before")
        obstacle = path.with_name(name)
        obstacle.unlink(missing_ok=True)
        obstacle.mkdir()
        sequence = reader.sequence
        with pytest.raises(IsADirectoryError):
            board.publish(b"x" * 1000)
        assert (reader.read(), reader.sequence) == (b"before", sequence)
        board.publish(b"small")
        assert (reader.read(), reader.sequence) == (b"small", sequence + 1)
        obstacle.rmdir()
    board.publish(b"x" * 1000)
    with BoardReader(path) as reader:
        assert reader.read() == b"x" * 1000


@pytest.mark.programs
@pytest.mark.skipif(os.geteuid() != 0, reason="an own file system needs root")
def test_a_full_file_system_is_an_error_to_catch(tmp_path: Path):
    """A writer whose board cannot grow gets ENOSPC, not a signal that kills it."""
    script = f"mount -t tmpfs -o size=256k none {tmp_path} && exec {sys.executable} -c {shlex.quote(FULL)}"
    ran = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{script} {tmp_path}"],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "28 b'small'"), ran.stderr


def test_a_board_without_a_publish_is_empty(path: Path):
    """A reader that comes before the first publish reads nothing, without error."""
    BoardWriter(path)
    with BoardReader(path) as reader:
        assert reader.read() == b""


@pytest.mark.parametrize(
    "content", [None, b"", b"short", b"\0" * 64, b"LBBOARD9" + b"\0" * 200, b"LBBOARD1" * 64]
)
def test_what_is_no_board_is_refused(path: Path, content: bytes | None):
    """A missing, empty, short or foreign file raises BoardError with its path."""
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BoardError, match=r"health\.board"):
        BoardReader(path)


def test_a_foreign_file_is_replaced_by_the_writer(path: Path):
    """A writer that finds something else under its name takes the name over."""
    path.write_bytes(b"something else")
    BoardWriter(path).publish(b"mine")
    with BoardReader(path) as reader:
        assert reader.read() == b"mine"


def test_closing_with_unlink_removes_the_name(path: Path):
    """A worker that ends takes its board away; a reader that has it open still reads the last state."""
    board = BoardWriter(path)
    board.publish(b"last")
    with BoardReader(path) as reader:
        board.close(unlink=True)
        assert not path.exists()
        assert reader.read() == b"last"


def test_only_the_owner_can_open_a_board(path: Path):
    """A board's file has mode 0600, also after it has grown."""
    board = BoardWriter(path, capacity=16)
    assert path.stat().st_mode & 0o777 == 0o600
    board.publish(b"x" * 100)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("remove", [Path.unlink, lambda path: shutil.rmtree(path.parent)])
def test_a_removed_board_is_made_again(
    path: Path, remove: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers that have the removed file move to the new one; without a directory nothing is lost."""
    monkeypatch.setattr(board_writer, "_LOOK_AGAIN", 0.0)
    path = path.parent / "run" / path.name
    path.parent.mkdir()
    writer = BoardWriter(path)
    writer.publish(b"before")
    reader = BoardReader(path)
    remove(path)
    writer.publish(b"meanwhile", changed=True)
    path.parent.mkdir(exist_ok=True)
    writer.publish(b"after", changed=True)
    assert reader.changes == reader.published().changes
    assert reader.read() == b"after"
    with BoardReader(path) as another:
        assert another.read() == b"after"
    reader.close()
    writer.close(unlink=True)
