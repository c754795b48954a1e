"""What a member of `group:` may do at a control socket: a real other user asks both kinds of servers."""

import contextlib
import grp
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import gevent
import pytest
from support.machines.nobody import UID

from appliance.net.control import permissions
from appliance.net.control.control_client import ControlClient
from appliance.net.control.control_server import Call, ControlServer, WithDescriptors
from appliance.net.control.loop_control_server import LoopControlServer
from appliance.net.files import readers
from appliance.net.loop.loop import Loop
from appliance.wire.lines.control import Answer, Question, good

pytestmark = [pytest.mark.programs, pytest.mark.needs("setpriv", root=True)]

GROUP: Final = "daemon"

_ASK: Final = """
import json, os, socket, sys
path, user, member, *commands = sys.argv[1:]
os.setgroups([int(member)] if member else [])
os.setgid(int(user)); os.setuid(int(user))
connection = socket.socket(socket.AF_UNIX)
try:
    connection.connect(path)
except PermissionError:
    print(json.dumps("closed")); sys.exit()
said = []
for command in commands:
    line, rights = b"", []
    while not line.endswith(b"\\n"):
        try:
            if not line:
                connection.sendall(json.dumps({"command": command}).encode() + b"\\n")
            data, ancillary, _, _ = connection.recvmsg(65536, 4096)
        except (BrokenPipeError, ConnectionResetError):
            data, ancillary = b"", []
        line, rights = line + data, rights + ancillary
        if not data:
            break
    said.append([line.decode(), len(rights)])
print(json.dumps(said))
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    """Return a runtime directory in which the group may look."""
    with tempfile.TemporaryDirectory(prefix="lb-") as root:
        Path(root).chmod(0o755)
        made = Path(root) / "run"
        made.mkdir(mode=0o700)
        readers.let_in(made, GROUP, owner=os.geteuid())
        yield made


def said_to_another(path: Path, *commands: str, member: bool = True) -> "list[list[object]] | str":
    """Return what another user is answered, and how many messages of descriptors came with it."""
    python = getattr(sys, "_base_executable", sys.executable)
    words = [
        python,
        "-I",
        "-c",
        _ASK,
        str(path),
        str(UID),
        str(grp.getgrnam(GROUP).gr_gid) if member else "",
        *commands,
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as asking:
        done: list[str] = []
        reader = threading.Thread(target=lambda: done.append(asking.communicate(timeout=30)[0]))
        reader.start()
        while reader.is_alive():
            gevent.sleep(0.01)
    found: list[list[object]] | str = json.loads(done[0])
    return found


def lend(call: Call) -> WithDescriptors:
    """Answer with standard output."""
    del call
    return WithDescriptors(answer=good(count=1), descriptors=[1])


@pytest.fixture
def path(directory: Path) -> Iterator[Path]:
    """Return the socket of a program with greenlets."""
    changed: list[str] = []

    def change(call: Call) -> Answer:
        changed.append(call.question.command)
        return good()

    server = ControlServer(
        directory / "program.control",
        {
            "status": lambda _: good(fine=True),
            "kill": change,
            "lent": lend,
            "listeners": lend,
        },
        on_error=lambda *_: None,
        for_readers={"status", "lent"},
    )
    yield directory / "program.control"
    server.close()
    assert changed == []


def test_a_member_may_look_only(path: Path):
    """What only looks is answered, everything else is refused in words."""
    said = said_to_another(path, "status", "kill", "none")
    (status, _), (kill, _), (unknown, _) = said
    assert json.loads(str(status))["fine"] is True
    assert json.loads(str(kill))["ok"] is False
    assert "not permitted" in str(kill)
    assert "unknown command" in str(unknown)


def test_a_member_gets_no_descriptors(path: Path):
    """Neither by a command that is refused, nor by one that only looks and has some."""
    (lent, rights), (listeners, more) = said_to_another(path, "lent", "listeners")
    assert json.loads(str(lent))["ok"] is True
    assert "not permitted" in str(listeners)
    assert (rights, more) == (0, 0)


def test_the_owner_gets_them(path: Path):
    """Who runs the programs is not restricted."""
    with ControlClient(path) as client:
        answer, descriptors = client.ask_for_descriptors(Question(command="listeners"))
    assert (answer.ok, len(descriptors)) == (True, 1)
    os.close(descriptors[0])


def test_others_cannot_connect(path: Path):
    """Who is no member is kept out by the mode."""
    assert said_to_another(path, "status", member=False) == "closed"


def test_a_directory_of_its_owner_alone_has_sockets_of_its_owner_alone(directory: Path):
    """Without a group all is as it was."""
    readers.keep_out(directory)
    server = ControlServer(directory / "alone.control", {}, on_error=lambda *_: None)
    assert (directory / "alone.control").stat().st_mode & 0o777 == 0o600
    assert directory.stat().st_mode & 0o7777 == 0o700
    server.close()


def test_members_leave_room_for_the_owner(path: Path, monkeypatch: pytest.MonkeyPatch):
    """Beyond a bound their connections are closed; the owner is still answered."""
    monkeypatch.setattr(permissions, "MOST_READERS", 0)
    assert said_to_another(path, "status") == [["", 0]]
    with ControlClient(path) as client:
        assert client.ask(Question(command="status")).ok


@contextlib.contextmanager
def looping(path: Path) -> Iterator[None]:
    """Serve a socket from a loop of its own thread."""
    loop = Loop()
    server = LoopControlServer(
        loop,
        path,
        {"status": lambda _: good(fine=True), "move": lambda _: good(moved=True)},
        on_error=lambda *_: None,
        for_readers={"status"},
    )
    ours, theirs = socket.socketpair()
    loop.read(ours.fileno(), loop.stop)
    thread = threading.Thread(target=loop.run)
    thread.start()
    try:
        yield
    finally:
        theirs.send(b"x")
        thread.join()
        server.close()
        loop.close()
        ours.close()
        theirs.close()


def test_a_program_of_one_loop_does_the_same(directory: Path):
    """Vrrp answers a member what it is, and moves for its owner only."""
    path = directory / "vrrp.control"
    with looping(path):
        (status, _), (move, _) = said_to_another(path, "status", "move")
        with ControlClient(path) as client:
            own = client.ask(Question(command="move"))
        closed = said_to_another(path, "status", member=False)
    assert json.loads(str(status))["fine"] is True
    assert "not permitted" in str(move)
    assert (own.ok, closed) == (True, "closed")


def test_a_loop_leaves_room_for_the_owner_too(directory: Path, monkeypatch: pytest.MonkeyPatch):
    """Members beyond the bound are closed, and nobody is evicted for them."""
    monkeypatch.setattr(permissions, "MOST_READERS", 0)
    path = directory / "vrrp.control"
    with looping(path):
        assert said_to_another(path, "status") == [["", 0]]
        with ControlClient(path) as client:
            assert client.ask(Question(command="status")).ok
