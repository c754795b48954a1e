"""Every file that programs share or keep, whatever became of it on a disk: see support/fuzzing/fuzzing.py.

State is disposable: a file that cannot be understood is an error that its reader expects, or as good as none.
"""

import io
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from struct import pack_into, unpack_from

import pytest
from support.fuzzing.fuzzing import Target, fuzz
from support.supervisor import releases
from support.values import snapshots as given

from appliance.guest.record import Record
from appliance.health import kept_by_operator
from appliance.health.kept_by_operator import STATES, WEIGHTS, OperatorOverridesError
from appliance.model.guest.placement import Placed
from appliance.model.guest.report import GuestProblem, GuestReport, Origin
from appliance.model.operator_events import EventKind, OperatorEvent
from appliance.model.paths import Paths
from appliance.model.server_states import AdminState
from appliance.model.server_weights import OperatorWeight
from appliance.model.snapshot.snapshot import SnapshotError, encode
from appliance.model.take_overs import FailedTakeOver, TakenOver, TakeOvers
from appliance.net.boards.board_layout import BoardError, checksum_of
from appliance.net.boards.board_reader import BoardReader
from appliance.net.boards.board_writer import BoardWriter
from appliance.net.events.event_board import EventBoard
from appliance.net.events.event_file import EventFile, tail
from appliance.net.events.event_follower import published
from appliance.net.files import guest_report_file, snapshots, take_over_note
from appliance.net.files.degraded import Degraded, degraded_path, read_degraded, write_degraded
from appliance.net.releases.archive import ArchiveRefused, unpack
from appliance.proxy.generation_numbers import GenerationNumbers
from appliance.wire.checksummed_json import checksummed
from appliance.wire.lines.control import AnswerProblem

pytestmark = pytest.mark.sockets

WORDS = (b"null", b"-1", b"1e400", b"9" * 40, b"[" * 2000, b'{"a":' * 2000, b"\xff", b'"\\ud800"', b'"drain"')


def content(path: Path, write: Callable[[Path], object]) -> bytes:
    """Return what our own program writes to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path)
    return path.read_bytes()


def feed(path: Path, read: Callable[[Path], object]) -> Callable[[bytes], None]:
    """Return the function that puts an input into the file, and has it read."""

    def run(data: bytes) -> None:
        path.write_bytes(data)
        read(path)

    return run


def read_board(path: Path) -> None:
    """Read a board in every way; whatever it is, the next writer takes the name over with its own."""
    try:
        with BoardReader(path) as reader:
            assert isinstance(reader.changes, int)
            reader.follow()
            assert len(reader.published().payload) <= reader.capacity
    except BoardError:
        pass
    writer = BoardWriter(path, capacity=64)
    writer.publish(b"mine", changed=True)
    with BoardReader(path) as reader:
        assert reader.read() == b"mine"
    writer.close()


def right_checksums(data: bytes) -> bytes:
    """Return a board whose halves have the checksums of what is in them, so that the rest of it is met."""
    board = bytearray(data)
    stride = (len(board) - 64) // 2
    for at in (64, 64 + stride):
        if stride >= 32:
            (length,) = unpack_from("=Q", board, at + 16)
            payload = bytes(board[at + 32 : min(at + 32 + length, len(board))])
            pack_into("=Q", board, at + 24, checksum_of(bytes(board[at : at + 24]), payload))
    return bytes(board)


EVENT = OperatorEvent(when=1.5, kind=EventKind.SERVER_DOWN, subject="masters/m-0", detail="500", id="1-2")


def keep_event(path: Path) -> None:
    """Append an event to the kept file whatever it holds; it is the last one that is read then."""
    EventFile(path).append([EVENT])
    assert tail(path)[-1] == EVENT


def tell_event(path: Path) -> None:
    """Tell an event on a board whatever is there; it is read by who follows the boards."""
    board = EventBoard(path, "health")
    board(EVENT)
    board.close()
    assert "masters/m-0" in {each.subject for each in published(path.parent)}


def write_board(path: Path) -> None:
    """Write one with something in both halves."""
    board = BoardWriter(path, capacity=64)
    board.publish(b"first")
    board.publish(b"second", changed=True)
    board.close()


def unpack_release(path: Path, *, as_read: Callable[[bytes], bytes] = bytes) -> None:
    """Unpack an archive: what is written then are plain files of one folder."""
    with tempfile.TemporaryDirectory() as folder:
        name = unpack(io.BytesIO(as_read(path.read_bytes())), Path(folder))
        assert name.startswith("lb-appliance-")
        assert all(each.is_file() for each in Path(folder).iterdir())


def number(path: Path) -> None:
    """Demand the number of a generation, which boards hold in 32 bits, and another one the next time."""
    numbers = GenerationNumbers(path)
    try:
        assert 0 < numbers.next() < numbers.next() < 1 << 32
    finally:
        numbers.close()


def targets(root: Path) -> dict[str, Target]:
    """Return the targets, whose files are below a directory."""
    paths = Paths(runtime=root / "run", state=root / "state")
    for each in (paths.runtime, paths.state):
        each.mkdir()
    accepted = content(paths.accepted, lambda _: snapshots.accept(paths, given.snapshot()))
    states = {("masters", "master-0"): AdminState.MAINT, ("masters", "b"): AdminState.DRAIN}
    weights = {
        ("masters", "master-0"): OperatorWeight(value=50, percent=True),
        ("masters", "b"): OperatorWeight(value=0, percent=False),
    }
    note = Degraded(since=1.0, problems=(AnswerProblem(message="no", path="pools", line=1, column=2),))
    record = Record(root)
    found = (
        Target(
            name="board",
            run=feed(paths.health_board, read_board),
            seeds=(content(paths.health_board, write_board),),
            mend=right_checksums,
        ),
        Target(
            name="accepted-snapshot",
            run=feed(paths.accepted, snapshots.read),
            seeds=(accepted, encode(given.snapshot(virtual_routers=(given.virtual_router(),)))),
            errors=(SnapshotError,),
            words=WORDS,
            mend=checksummed,
        ),
        Target(
            name="operator-states",
            run=feed(root / "states.json", lambda path: kept_by_operator.load(path, STATES)),
            seeds=(
                content(root / "states.json", lambda path: kept_by_operator.save(path, STATES, states)),
                b"{}",
            ),
            errors=(OperatorOverridesError,),
            words=WORDS,
            mend=checksummed,
        ),
        Target(
            name="operator-weights",
            run=feed(root / "weights.json", lambda path: kept_by_operator.load(path, WEIGHTS)),
            seeds=(
                content(root / "weights.json", lambda path: kept_by_operator.save(path, WEIGHTS, weights)),
            ),
            errors=(OperatorOverridesError,),
            words=(*WORDS, b'"50%"', b'"256"', b'"-1"', b'"%"'),
            mend=checksummed,
        ),
        Target(
            name="degraded-note",
            run=feed(degraded_path(paths), lambda _: read_degraded(paths)),
            seeds=(content(degraded_path(paths), lambda _: write_degraded(paths, note)),),
            words=WORDS,
        ),
        Target(
            name="take-over-note",
            run=feed(paths.take_overs, lambda _: take_over_note.write(paths, take_over_note.read(paths))),
            seeds=(content(paths.take_overs, lambda _: take_over_note.write(paths, TAKE_OVERS)),),
            words=WORDS,
        ),
        Target(
            name="generation-lock",
            run=feed(paths.runtime / "proxy-api.lock", number),
            seeds=(content(paths.runtime / "proxy-api.lock", number), b"0000000007\n"),
            words=(b"-", b"+", b"_", b" ", b"9" * 20, b"\xc2\xb2"),
        ),
        Target(
            name="guest-record",
            run=feed(root / "var/lib/appliance-guest/record.json", lambda _: record.placed()),
            seeds=(
                content(root / "var/lib/appliance-guest/record.json", lambda _: record.keep_placed(PLACED)),
            ),
            words=WORDS,
        ),
        Target(
            name="guest-report",
            run=feed(paths.guest_report, lambda _: guest_report_file.read(paths)),
            seeds=(content(paths.guest_report, lambda _: guest_report_file.publish(paths, REPORT)),),
            words=WORDS,
        ),
        Target(
            name="kept-events",
            run=feed(paths.events, keep_event),
            seeds=(content(paths.events, keep_event), b""),
            words=(*WORDS, b'"server-down"', b"\n"),
        ),
        Target(
            name="event-board",
            run=feed(paths.event_board("health"), tell_event),
            seeds=(content(paths.event_board("health"), tell_event),),
            words=(b"\n", b'"kind":', b"\\u001b"),
            mend=right_checksums,
        ),
        Target(
            name="release-archive",
            run=feed(root / "release.tar.gz", unpack_release),
            seeds=(releases.compressed(releases.archive()),),
            errors=(ArchiveRefused,),
        ),
        Target(
            name="release-tar",
            run=feed(root / "release.tar", lambda path: unpack_release(path, as_read=releases.compressed)),
            seeds=(releases.archive(), releases.archive(kind=tarfile.PAX_FORMAT)),
            errors=(ArchiveRefused,),
            words=(b"../", b"/", b"\0" * 8, b"lb-appliance-", b"77777777777", b"S", b"x", b"g", b"5"),
            mend=releases.with_checksums,
        ),
    )
    return {each.name: each for each in found}


NAMES = (
    "board",
    "accepted-snapshot",
    "operator-states",
    "operator-weights",
    "degraded-note",
    "take-over-note",
    "generation-lock",
    "guest-record",
    "guest-report",
    "kept-events",
    "event-board",
    "release-archive",
    "release-tar",
)
PLACED = Placed(yaml="a" * 64, properties="b" * 64)
TAKE_OVERS = (
    TakeOvers()
    .with_done(TakenOver(when=1.0, version="0.9", pid=7, by="1.0"))
    .with_failed(FailedTakeOver(when=2.0, version="1.1", pid=8, reason="it has ended"))
)
REPORT = GuestReport(
    origin=Origin.VMWARE,
    applied_at=1.0,
    properties={"hostname": "lb-1"},
    problems=(GuestProblem(message="no", key="hostname", line=1, column=2),),
)


@pytest.mark.parametrize("name", NAMES)
def test_no_content_breaks_the_reader_of_a_file(
    name: str, tmp_path: Path, fuzz_seconds: float, fuzz_seed: int
):
    """A damaged file is the error that its reader expects, or as good as none."""
    target = targets(tmp_path)[name]
    assert fuzz(target, seconds=fuzz_seconds, seed=fuzz_seed) > len(target.seeds)


def test_every_target_is_fed(tmp_path: Path):
    """None is forgotten in the list of names."""
    assert tuple(targets(tmp_path)) == NAMES
