"""Standard input as a file: from pipes, from terminals, without an end."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.net.files.standard_input import read_standard_input
from appliance.net.files.state_files import FileUnusable

pytestmark = pytest.mark.sockets


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Give both ends of a pipe."""
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)


def test_whole(pipe: tuple[int, int]):
    """Everything up to the end is one content, however it comes."""
    os.write(pipe[1], b"a")
    os.write(pipe[1], b"b" * 1000)
    os.close(pipe[1])
    assert read_standard_input(descriptor=pipe[0]) == b"a" + b"b" * 1000


def test_too_much(pipe: tuple[int, int]):
    """What is longer than a configuration may be is refused before its end."""
    os.write(pipe[1], b"a" * 11)
    with pytest.raises(FileUnusable, match="more than 10 bytes"):
        read_standard_input(descriptor=pipe[0], limit=10)
    os.close(pipe[1])


def test_silence(pipe: tuple[int, int]):
    """Who writes nothing is not waited for for ever."""
    with pytest.raises(FileUnusable, match="nothing came"):
        read_standard_input(descriptor=pipe[0], patience=0.01)
    os.close(pipe[1])


def test_a_terminal():
    """Nobody is to wait for a command that waits for him."""
    master, terminal = pty.openpty()
    with pytest.raises(FileUnusable, match="is a terminal"):
        read_standard_input(descriptor=terminal)
    os.close(master)
    os.close(terminal)


def test_none():
    """A descriptor that is closed is an answer and no traceback."""
    reader, writer = os.pipe()
    os.close(reader)
    os.close(writer)
    with pytest.raises(FileUnusable, match="Bad file descriptor"):
        read_standard_input(descriptor=reader)


def _check(*arguments: str, **given: object) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-m", "appliance.console", "check", *arguments]
    return subprocess.run(command, capture_output=True, check=False, timeout=60, **given)  # type: ignore[call-overload, no-any-return]  # whatever run(2) takes


@pytest.mark.programs
def test_the_command_reads_it(tmp_path: Path):
    """Problems have their line in what was given; other files are read beside it as always."""
    done = _check("-", input=b"log: { level: info }\npols: {}\n")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].startswith(b"<stdin>:2:1: pols: unknown key `pols`")
    assert _check("-", input=b"{}").stdout == b"<stdin>: ok\n"
    assert _check("-", "--json", stdin=subprocess.DEVNULL).returncode == 1
    (tmp_path / "a.yaml").write_text("{}")
    with (tmp_path / "a.yaml").open("rb") as file:
        assert _check("-", stdin=file).returncode == 0


@pytest.mark.programs
def test_the_command_does_not_wait_at_a_terminal():
    """It is misuse, and says what is right."""
    master, terminal = pty.openpty()
    done = _check("-", stdin=terminal)
    os.close(terminal)
    os.close(master)
    assert done.returncode == 2
    assert b"check - < appliance.yaml" in done.stderr
