"""Levels of lines, where journald reads them and where somebody else does."""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support.notifying.journald import journald

from appliance.net.logging.journal import SyslogSeverity, levelled, listens, marked

pytestmark = pytest.mark.programs

_EVERY_LEVEL = (
    "from appliance.net.logging import log\n"
    "logger = log.configure('x', level='debug', form={form!r})\n"
    "logger.debug('one'); logger.info('two'); logger.warning('three'); logger.error('four')\n"
    "try:\n  1/0\nexcept ZeroDivisionError:\n  logger.exception('five')\n"
)
_MOVED = (
    "import sys\n"
    "from appliance.net.logging import log\n"
    "from appliance.net.logging.output import STDOUT, output\n"
    "logger = log.configure('x', level='info', form='json')\n"
    "logger.warning('before')\n"
    "output(STDOUT).replace(int(sys.argv[1]))\n"
    "logger.warning('after')\n"
)


def _run(code: str, *arguments: str, stdout: object, pass_fds: tuple[int, ...] = ()) -> bytes:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, stdout=stdout, pass_fds=pass_fds, check=True, timeout=60)  # type: ignore[call-overload]  # a file or a number
    return done.stdout or b""


def test_journald_learns_the_level_of_every_line():
    """A line in JSON begins with the number of its severity, whatever its level is."""
    with journald() as reader:
        _run(_EVERY_LEVEL.format(form="json"), stdout=reader.service)
        assert [line[:4] for line in reader.lines()] == ["<7>{", "<6>{", "<4>{", "<3>{", "<3>{"]


def test_every_line_of_a_traceback_is_an_error():
    """For people a traceback has many lines, each of which is an entry of journald's."""
    with journald() as reader:
        _run(_EVERY_LEVEL.format(form="console"), stdout=reader.service)
        lines = reader.lines()
        assert [line[:3] for line in lines[:4]] == ["<7>", "<6>", "<4>", "<3>"]
        assert len(lines) > 5
        assert {line[:3] for line in lines[4:]} == {"<3>"}
        assert any("ZeroDivisionError" in line for line in lines)


def test_nobody_else_sees_numbers():
    """A pipe and a socket of another name get the line alone."""
    assert _run(_EVERY_LEVEL.format(form="json"), stdout=subprocess.PIPE).startswith(b"{")
    with journald("elsewhere/stdout") as reader:
        _run(_EVERY_LEVEL.format(form="json"), stdout=reader.service)
        assert {line[0] for line in reader.lines()} == {"{"}


def test_a_worker_with_another_output():
    """Who is handed journald's socket later speaks its language from then on, and not before."""
    with journald() as reader:
        number = reader.service.fileno()
        before = _run(_MOVED, str(number), stdout=subprocess.PIPE, pass_fds=(number,))
        assert before.startswith(b"{")
        (after,) = reader.lines()
        assert after.startswith("<4>{")


def test_who_listens():
    """journald, also that of a journal namespace; no file, no closed descriptor, no pair of sockets."""
    for place in ("systemd/journal/stdout", "systemd/journal.lb/stdout"):
        with journald(place) as reader:
            assert listens(reader.service.fileno())
    left, right = socket.socketpair()
    with left, right, tempfile.TemporaryFile() as file, socket.socket() as unconnected:
        assert not any(listens(each.fileno()) for each in (left, file, unconnected))
    read, write = os.pipe()
    os.close(read)
    os.close(write)
    assert not listens(write)


def test_text_for_whom():
    """Each line is marked, an unfinished one too; where journald does not listen nothing is."""
    assert marked("one\ntwo", SyslogSeverity.ERROR) == "<3>one\n<3>two"
    with journald() as reader:
        assert levelled("one", SyslogSeverity.WARNING, reader.service.fileno()) == "<4>one"
    with Path(os.devnull).open("w") as file:
        assert levelled("one", SyslogSeverity.WARNING, file.fileno()) == "one"


def test_errors_of_a_start_are_errors(tmp_path: Path):
    """`appliance run` that cannot start says why as errors of the journal."""
    config = tmp_path / "appliance.yaml"
    config.write_text("foo: 1\n")
    places = (
        "--config",
        str(config),
        "--runtime-dir",
        str(tmp_path / "run"),
        "--state-dir",
        str(tmp_path / "state"),
    )
    with journald() as reader:
        command = [str(Path(sys.executable).parent / "appliance"), *places, "run"]
        done = subprocess.run(command, stdout=reader.service, stderr=reader.service, check=False, timeout=60)
        assert done.returncode == 1
        lines = reader.lines()
        assert lines
        assert [line for line in lines if not line.startswith("<3>")] == []
