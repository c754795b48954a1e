"""Writing to standard output that nobody reads, by processes of their own."""

import os
import socket
import subprocess
import sys

import pytest

pytestmark = pytest.mark.programs

_MUCH = (
    "from appliance.net.logging import log\n"
    "logger = log.configure('x', level='info', form='json')\n"
    "for _ in range(10000): logger.info('a-line', text='x' * 100)\n"
)
_MOVED = _MUCH + (
    "import os, sys\n"
    "from appliance.net.logging.output import STDOUT, output\n"
    "output(STDOUT).replace(2)\n"
    "logger.info('elsewhere')\n"
)


def run(code: str, stdout: int) -> bytes:
    """Run code to its end, and return what it has written to standard error."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, check=True, timeout=30).stderr


def test_a_socket_that_nobody_reads():
    """A program whose log is a full socket loses lines and goes on, without making it non-blocking."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert run(_MUCH, theirs.fileno()) == b""
        assert os.get_blocking(theirs.fileno())


def test_a_terminal_that_nobody_reads():
    """A program whose terminal has stopped goes on, and the shell's own writes still wait."""
    ours, theirs = os.openpty()
    assert run(_MUCH, theirs) == b""
    assert os.get_blocking(theirs)
    os.close(ours)
    os.close(theirs)


def test_a_pipe_that_nobody_reads_stays_as_it_is():
    """A full pipe stops nobody, and others who write to it still wait."""
    read, write = os.pipe()
    assert run(_MUCH, write) == b""
    assert os.get_blocking(write)
    os.close(read)
    os.close(write)


@pytest.mark.parametrize("kind", ["socket", "pipe"])
def test_another_output(kind: str):
    """After a replacement the log goes to the new output, however full the old one was."""
    ours, theirs = (each.detach() for each in socket.socketpair()) if kind == "socket" else os.pipe()
    assert b"elsewhere" in run(_MOVED, theirs)
    os.close(ours)
    os.close(theirs)


def test_a_line_that_was_cut():
    """The line after one that did not fit as a whole begins on a line of its own."""
    ours, theirs = socket.socketpair()
    code = (
        "import contextlib, sys\n"
        "from appliance.net.logging.output import STDOUT, output\n"
        "with contextlib.suppress(OSError): output(STDOUT).write(b'x' * 10_000_000 + b'\\n')\n"
        "print('cut', file=sys.stderr, flush=True)\n"
        "sys.stdin.read()\n"
        "output(STDOUT).write(b'whole\\n')\n"
    )
    with ours:
        pipe = subprocess.PIPE
        child = subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=theirs, stderr=pipe)
        assert child.stderr is not None
        assert child.stderr.readline() == b"cut\n"
        ours.settimeout(0)
        with theirs:
            read_until_empty(ours)
        ours.settimeout(30)
        child.communicate(timeout=30)
        assert ours.recv(100) == b"\nwhole\n"


def read_until_empty(connection: socket.socket) -> None:
    """Read what is there."""
    try:
        while connection.recv(1_000_000):
            pass
    except BlockingIOError:
        return
