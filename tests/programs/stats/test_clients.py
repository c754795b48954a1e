"""Debian's clients of HAProxy, unmodified, at our statistics: Nagios' check, and hatop in a terminal."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from support.processes.waiting import wait_until
from support.run import tools
from support.stats.stats_site import StatsSite, stats_site

pytestmark = [pytest.mark.programs, pytest.mark.slow("a whole appliance and its readers")]

_CHECK = "/usr/lib/nagios/plugins/check_haproxy_stats"
_SEQUENCE = re.compile(rb"\x1b(\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>])")
_ROWS, _COLUMNS = 40, 120


@pytest.fixture(scope="module")
def site() -> Iterator[StatsSite]:
    """Run three masters, an appliance and its statistics."""
    with stats_site() as made:
        yield made


def _checked(*arguments: str) -> tuple[int, str]:
    done = subprocess.run([_CHECK, *arguments], capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout.partition("|")[0].strip()


@pytest.mark.needs(_CHECK, "curl")
def test_nagios(site: StatsSite):
    """By socket and by HTTP: all is well, then a server is down, and named."""
    ways = (("-s", str(site.socket)), ("-U", site.url("/haproxy_stats")))
    for way in ways:
        wait_until(lambda way=way: _checked(*way)[0] == 0, what=f"all is well {way}")
        assert _checked(*way) == (0, "Check haproxy OK - checked 5 proxies.")
    site.command("set server masters/master-1 state maint")
    try:
        for way in ways:
            wait_until(lambda way=way: _checked(*way)[0] == 2, what=f"the server is missed {way}")
            assert "master-1" in _checked(*way)[1]
            assert _checked("-m", *way)[0] == 0  # servers in maint are left out
    finally:
        site.command("set server masters/master-1 state ready")
    wait_until(lambda: _checked(*ways[0])[0] == 0, what="all is well again")


@dataclass(slots=True)
class Screen:
    """A program in a terminal of 120 columns, and what it has written."""

    descriptor: int
    written: bytearray = field(default_factory=bytearray)

    def shows(self, *words: str) -> bool:
        """Read what there is; return whether all the words have been on the screen."""
        while select.select([self.descriptor], [], [], 0)[0]:
            try:
                self.written += os.read(self.descriptor, 65536)
            except OSError:  # EIO: the program has ended
                break
        text = _SEQUENCE.sub(b" ", bytes(self.written)).decode(errors="replace")
        return all(word in text for word in words)


@contextlib.contextmanager
def terminal(*command: str) -> Iterator[tuple[Screen, subprocess.Popen[bytes]]]:
    """Run a program in a terminal; it is ended with the block."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    )
    os.close(theirs)
    try:
        yield Screen(ours), process
    finally:
        process.kill()
        process.wait(timeout=30)
        os.close(ours)


@pytest.mark.needs("hatop")
def test_hatop(site: StatsSite):
    """It shows our proxies and servers, and ends with `q`."""
    program = tools.path("hatop")
    assert program is not None
    with terminal(program, "-s", str(site.socket)) as (screen, process):
        wait_until(
            lambda: screen.shows("HAProxy Version", "kube-api", "masters", "master-0", "BACKEND"),
            what="hatop shows the servers",
        )
        os.write(screen.descriptor, b"q")
        wait_until(lambda: (screen.shows(), process.poll())[1] is not None, what="hatop has ended")
    assert process.returncode == 0
