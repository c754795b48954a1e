"""What a board says, decoded: nothing where nobody wrote it, and again when its file is another one."""

from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from appliance.net.boards.board_content import BoardFollower, content
from appliance.net.boards.board_writer import BoardWriter
from appliance.wire.boards.health_board import BoardFormatError

pytestmark = pytest.mark.sockets


def _text(payload: bytes) -> str:
    if payload == b"damaged":
        raise BoardFormatError("no text")
    return payload.decode()


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """Return where a board may be."""
    return tmp_path / "health.board"


def test_there_is_nothing_without_a_board(board: Path):
    """A board that nobody has made, and one without a payload, have no content, and nothing is logged."""
    with capture_logs() as logged:
        absent = content(board, _text, structlog.get_logger())
        BoardWriter(board).close()
        empty = content(board, _text, structlog.get_logger())

    assert (absent, empty, logged) == (None, None, [])


def test_damage_is_logged(board: Path):
    """A payload that cannot be decoded, and a file that is no board, are no content, and logged."""
    BoardWriter(board).publish(b"damaged", changed=True)

    with capture_logs() as logged:
        undecoded = content(board, _text, structlog.get_logger())
        board.write_bytes(b"something else")
        no_board = content(board, _text, structlog.get_logger())

    assert (undecoded, no_board) == (None, None)
    assert [each["event"] for each in logged] == ["board-unreadable"] * 2


def test_a_follower_returns_what_has_changed(board: Path):
    """It waits for the board, and returns each content once, unless it is to forget it."""
    follower = BoardFollower(board, _text)
    seen = [follower.changed()]
    writer = BoardWriter(board)
    writer.publish(b"one", changed=True)
    seen += [follower.changed(), follower.changed()]
    writer.publish(b"two", changed=False)
    seen.append(follower.changed())
    follower.forget()
    seen.append(follower.changed())

    assert seen == [None, "one", None, None, "two"]


def test_a_follower_skips_damage(board: Path):
    """It returns nothing while the payload is damaged, and the next one that is whole."""
    follower, writer = BoardFollower(board, _text), BoardWriter(board)
    writer.publish(b"damaged", changed=True)
    damaged = follower.changed()
    writer.publish(b"whole", changed=True)

    assert (damaged, follower.changed()) == (None, "whole")


def test_a_follower_finds_the_file_that_replaced_one(board: Path):
    """A board that somebody removed, and that was made anew, is found after a few looks."""
    follower = BoardFollower(board, _text)
    BoardWriter(board).publish(b"old", changed=True)
    first = follower.changed()
    board.unlink()
    BoardWriter(board).publish(b"new", changed=True)

    assert (first, [each for each in (follower.changed() for _ in range(20)) if each]) == ("old", ["new"])
