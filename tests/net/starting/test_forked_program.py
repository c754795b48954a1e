"""Programs as forks: they find what they would find after an exec, and share nothing that differs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from appliance.net.process import python, shown_command
from appliance.net.starting.forked_program import ReleaseFiles

pytestmark = pytest.mark.programs

_COMMAND = python.command("support.processes.circumstances", "one", "t wo")
_PARENT = """
import os, signal, socket, sys, random
from gevent import sleep
from appliance.net.logging.log import configure
from appliance.net.starting import forked_program
assert forked_program.is_possible()
forked_program.load(["support.processes.circumstances", "no.such.module"])
configure("parent", level="info", form="json")
held = [socket.socket() for _ in range(40)]
os.dup2(held[0].fileno(), 300, inheritable=True)
signal.signal(signal.SIGTERM, lambda *_: None)
signal.signal(signal.SIGHUP, lambda *_: None)
signal.signal(signal.SIGINT, lambda *_: None)
read, write = socket.socketpair()
write.setblocking(False)
signal.set_wakeup_fd(write.fileno())
words, environment = sys.argv[2:], {**os.environ, "GIVEN": "yes"}
environment.pop("TAKEN")
for _ in range(2):
    child = os.fork()
    if not child:
        one, other = held[1].fileno(), held[2].fileno()
        given = {9: one, one: other} if sys.argv[1] == "given" else {}
        forked_program.become(words, environment, descriptors=given)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
_IN_PLACE = """
import os, signal, socket, sys
from appliance.net.logging.log import configure
from appliance.net.privileges import drop_privileges
from appliance.net.starting import forked_program
if sys.argv[2]:
    drop_privileges.become(sys.argv[2], owned=())
drop_privileges.gain_nothing()
configure("parent", level="info", form="json")
held = [socket.socket() for _ in range(40)]
for number in (30, 31, 300):
    os.dup2(held[0].fileno(), number, inheritable=True)
signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGUSR1))
signal.signal(signal.SIGUSR2, signal.SIG_IGN)
signal.signal(signal.SIGHUP, lambda *_: None)
words, environment = sys.argv[3:], {**os.environ, "GIVEN": "yes"}
environment.pop("TAKEN")
if sys.argv[1] == "exec":
    os.execve(words[0], words, environment)
drop_privileges.settle()
assert forked_program.is_possible()
forked_program.become(words, environment, descriptors=forked_program.inheritable())
"""


def in_place(way: str, user: str) -> dict[str, Any]:
    """Return what a command finds in the process of another one that becomes it: by `exec`, or without."""
    done = subprocess.run(
        [sys.executable, "-Ps", "-c", _IN_PLACE, way, user, *_COMMAND],
        env={**os.environ, "TAKEN": "no", "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (3, "")
    return dict(found(done.stdout)["same"])


def forked(*words: str, given: str = "nothing") -> "subprocess.CompletedProcess[str]":
    """Run a command twice as a fork of a process that has much which is not to be inherited."""
    return subprocess.run(
        [sys.executable, "-Ps", "-c", _PARENT, given, *words],
        env={**os.environ, "TAKEN": "no", "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )


def found(said: str) -> dict[str, Any]:
    """Return what one of them found."""
    return dict(json.loads(said))


def test_a_fork_finds_what_a_program_finds():
    """Descriptors, signals, command line, environment: all are as after an exec of the same command."""
    environment = {**os.environ, "GIVEN": "yes", "PYTHONPATH": str(Path(__file__).parents[2])}
    # The parent of the fork handles these, which the environment of the tests may ignore.
    default = ("env", "--default-signal=HUP,INT,TERM")
    execed = subprocess.run(
        [*default, *_COMMAND],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    first, status, second, _ = forked(*_COMMAND).stdout.splitlines()
    assert found(first)["same"] == found(execed.stdout)["same"]
    assert found(second)["same"] == found(first)["same"]
    assert int(status) == execed.returncode == 3


@pytest.mark.parametrize("user", ["", pytest.param("nobody", marks=pytest.mark.needs(root=True))])
def test_what_an_exec_would_leave_is_left_without_one(user: str):
    """Inheritable descriptors, blocked signals, capabilities: as after an exec, also as another user."""
    found_there = in_place("exec", user)
    assert in_place("become", user) == found_there
    assert {30, 31, 300} < set(found_there["descriptors"])


def test_random_numbers_are_its_own():
    """Two forks of one process have no random number in common, be it Python's, OpenSSL's or the kernel's."""
    first, _, second, _ = forked(*_COMMAND).stdout.splitlines()
    assert not set(found(first)["own"]) & set(found(second)["own"])


def test_descriptors_have_their_numbers():
    """Those that are given have the numbers that they are to have, also if another one had that number."""
    first = forked(*_COMMAND, given="given").stdout.splitlines()[0]
    assert len(found(first)["same"]["descriptors"]) == 5


def test_its_last_words_and_its_status_are_those_of_a_program():
    """An exit with words is status 1 and the words; an exception is status 1 and its traceback."""
    done = forked(*python.command("support.processes.circumstances", "fail"))
    assert done.stdout.split() == ["1", "1"]
    assert done.stderr == "it must not be\n" * 2
    done = forked(*python.command("support.processes.no_such_module"))
    assert done.stdout.split() == ["1", "1"]
    assert "No module named support.processes.no_such_module" in done.stderr


def test_another_release_in_the_same_place_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A package that was installed anew, and one that a link leads to, are other ones than were imported."""
    for release in ("one", "two"):
        (tmp_path / release).mkdir()
        (tmp_path / release / "__init__.py").touch()
    link = tmp_path / "current"
    link.symlink_to("one")
    monkeypatch.setattr("appliance.__file__", str(link / "__init__.py"))
    files = ReleaseFiles()
    assert not files.changed
    link.unlink()
    link.symlink_to("two")
    assert files.changed
    files = ReleaseFiles()
    (tmp_path / "two" / "new").touch()
    (tmp_path / "two" / "new").rename(tmp_path / "two" / "__init__.py")
    assert files.changed
    (tmp_path / "two" / "__init__.py").unlink()
    assert files.changed


def test_a_command_line_can_be_shown():
    """This kernel lets a process show another command line, on which all forks depend."""
    assert shown_command.can_be_shown()


def test_without_the_kernels_own_numbers_none_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An emulator of processors has a /proc/self/stat with few fields: programs start by exec there."""
    stat = tmp_path / "stat"
    stat.write_text("1 (python3) R 0 0 0\n")
    monkeypatch.setattr(shown_command, "_STAT", stat)
    assert not shown_command.can_be_shown()
