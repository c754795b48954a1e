"""The part of a node in a push, where no appliance runs: what arrives, and the file that is replaced."""

import hashlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from appliance.console.command import main
from appliance.console.fleet.accept import FileBusy, Orders, ReplacedFile, TransferCut

pytestmark = pytest.mark.sockets

GOOD = b"defaults: {drain: 60s}\n"


@pytest.fixture
def orders() -> Iterator[tuple[Orders, int]]:
    """Give one who takes orders from a pipe, and its other end."""
    reader, writer = os.pipe()
    yield Orders(reader), writer
    os.close(reader)


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """Have the signals that the command ignores as they were."""
    numbers = (signal.SIGHUP, signal.SIGINT)
    before = [signal.getsignal(each) for each in numbers]
    yield
    for number, each in zip(numbers, before, strict=True):
        signal.signal(number, each)


def digest(content: bytes) -> str:
    """Return the SHA-256 of a content."""
    return hashlib.sha256(content).hexdigest()


def test_a_file_and_words_arrive(orders: tuple[Orders, int]):
    """However they come in pieces; at the end there is no word."""
    taker, writer = orders
    os.write(writer, GOOD + b"app")
    assert taker.file(size=len(GOOD), checksum=digest(GOOD)) == GOOD
    os.write(writer, b"ly\nkeep\n")
    os.close(writer)
    assert [taker.word(seconds=5.0) for _ in range(3)] == ["apply", "keep", None]


@pytest.mark.parametrize("sent", [b"", GOOD[:-1], GOOD[:-1] + b"x"])
def test_a_file_that_is_cut_or_damaged_is_refused(orders: tuple[Orders, int], sent: bytes):
    """It says so."""
    taker, writer = orders
    os.write(writer, sent)
    os.close(writer)
    with pytest.raises(TransferCut):
        taker.file(size=len(GOOD), checksum=digest(GOOD))


@pytest.mark.parametrize("sent", [b"", b"x" * 100])
def test_silence_and_noise_are_no_word(orders: tuple[Orders, int], sent: bytes):
    """The wait has an end, and what is kept of a line without one, too."""
    taker, writer = orders
    os.write(writer, sent)
    assert taker.word(seconds=0.0) is None
    os.close(writer)


def test_a_file_is_replaced_and_put_back(tmp_path: Path):
    """Its mode stays, a link stays one, and the one before is beside it."""
    real = tmp_path / "real.yaml"
    real.write_bytes(b"old\n")
    real.chmod(0o604)
    link = tmp_path / "appliance.yaml"
    link.symlink_to(real)
    file = ReplacedFile(link)
    file.replace(GOOD)
    assert (link.is_symlink(), real.read_bytes(), real.stat().st_mode & 0o777) == (True, GOOD, 0o604)
    assert (tmp_path / "real.yaml.former").read_bytes() == b"old\n"
    file.put_back()
    assert real.read_bytes() == b"old\n"


def test_a_file_that_was_not_there_is_gone_again(tmp_path: Path):
    """Nothing stays beside it."""
    file = ReplacedFile(tmp_path / "appliance.yaml")
    file.replace(GOOD)
    file.put_back()
    assert list(tmp_path.iterdir()) == []


def test_two_pushes_exclude_each_other(tmp_path: Path):
    """The second one is refused while the first goes on."""
    first, second = ReplacedFile(tmp_path / "a.yaml"), ReplacedFile(tmp_path / "a.yaml")
    with first.held(), pytest.raises(FileBusy), second.held():
        pass
    with second.held():
        assert second.objection() is None


def test_a_directory_that_is_none_is_an_objection(tmp_path: Path):
    """It is named."""
    said = ReplacedFile(tmp_path / "none" / "a.yaml").objection()
    assert said == f"{tmp_path}/none is no directory"


def accept(root: Path, given: bytes, content: bytes = GOOD) -> tuple[int, list[dict[str, object]]]:
    """Run the command of a node, and return its status and what it says."""
    places = ("--config", str(root / "a.yaml"), "--runtime-dir", str(root / "run"), "--state-dir", str(root))
    words = ("fleet", "accept", "--size", str(len(content)), "--sha256", digest(content), *places)
    reader, writer = os.pipe()
    os.write(writer, given)
    os.close(writer)
    before = os.dup(0)
    os.dup2(reader, 0)
    try:
        done = CliRunner().invoke(main, words)
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(reader)
    return done.exit_code, [json.loads(each) for each in done.stdout.splitlines() if each.startswith("{")]


def test_where_no_appliance_runs_the_file_is_put_in_place(tmp_path: Path):
    """Each step is a line; it is kept when that is said."""
    status, said = accept(tmp_path, GOOD + b"apply\nkeep\n")
    assert (status, [each["step"] for each in said]) == (0, ["checked", "applied", "kept"])
    assert not said[0]["runs"]
    assert (tmp_path / "a.yaml").read_bytes() == GOOD


@pytest.mark.parametrize("words", [b"apply\n", b"apply\nkeeps\n", b"apply\nk"])
def test_without_the_word_to_keep_it_it_goes_back(tmp_path: Path, words: bytes):
    """So it does after any other word."""
    (tmp_path / "a.yaml").write_text("reload: {watch: off}\n")
    status, said = accept(tmp_path, GOOD + words)
    assert (status, [each["step"] for each in said]) == (1, ["checked", "applied", "back"])
    assert (tmp_path / "a.yaml").read_text() == "reload: {watch: off}\n"


@pytest.mark.parametrize("given", [GOOD, GOOD + b"keep\n", GOOD[:-1]])
def test_without_the_word_to_apply_it_nothing_is_written(tmp_path: Path, given: bytes):
    """Not even what is kept beside it."""
    status, _ = accept(tmp_path, given)
    assert status == 1
    assert not (tmp_path / "a.yaml").exists()


def test_errors_end_it(tmp_path: Path):
    """They have places without a name, as the pushed file may have another one; no further word counts."""
    wrong = b"defaults: {drain: soon}\n"
    status, said = accept(tmp_path, wrong + b"apply\nkeep\n", wrong)
    assert (status, [each["step"] for each in said]) == (1, ["checked"])
    [error] = said[0]["errors"]  # type: ignore[misc]  # JSON
    assert (error["source"], error["line"], error["path"]) == (None, 1, "defaults.drain")
    assert not (tmp_path / "a.yaml").exists()


def test_a_secret_that_this_node_lacks_is_an_error(tmp_path: Path):
    """A push does not bring it: its key and file are named."""
    content = f"stats: {{auth: {{user: admin, password_file: {tmp_path}/none}}}}\n".encode()
    status, said = accept(tmp_path, content + b"apply\nkeep\n", content)
    assert (status, [each["step"] for each in said]) == (1, ["checked"])
    [error] = said[0]["errors"]  # type: ignore[misc]  # JSON
    assert (error["path"], f"{tmp_path}/none" in error["message"]) == ("stats", True)
