"""The socket for take-overs and upgrades: who may ask for what, and what becomes of who has gone."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes.waiting import wait_until
from support.supervisor.appliance import ask
from support.supervisor.lone_succession import LoneSuccession

from appliance.net.files.lock_files import hold
from appliance.net.privileges.peer_credentials import PeerCredentials
from appliance.supervisor.succession import incumbent
from appliance.wire.lines.control import Question, decode_answer, encode_question
from appliance.wire.lines.succession import DONE, Party, request

pytestmark = pytest.mark.sockets

_COMMAND = ["/opt/none/bin/appliance"]


@pytest.fixture
def lone(tmp_path: Path) -> Iterator[LoneSuccession]:
    """Run one that has no capabilities."""
    with LoneSuccession(tmp_path) as made:
        yield made


def test_who_asks_is_stood_by_for_until_it_has_gone(lone: LoneSuccession):
    """It gets the lock; when its connection ends, the programs are supervised again."""
    found = incumbent.ask(lone.paths.succession_socket, Party(version="9.9.9", instance="7-a"))
    assert lone.programs.orders == ["stand by"]
    with pytest.raises(incumbent.IncumbentRefused, match="takes over from it at this moment"):
        incumbent.ask(lone.paths.succession_socket, Party(version="9.9.9"))
    for descriptor in (found.connection, found.lock):
        socket.close(descriptor)
    wait_until(lambda: lone.programs.orders == ["stand by", "resume after 7-a"], what="it goes on")


def test_who_is_relieved_leaves_lock_and_name(lone: LoneSuccession):
    """The one in charge listens under the name, and when it goes nobody has the lock."""
    path, lock = lone.paths.succession_socket, lone.paths.lock
    found = incumbent.ask(path, Party(version="9.9.9", instance="7-a"))
    with socket.socket(fileno=found.connection) as connection:
        connection.settimeout(30.0)
        connection.sendall(encode_question(Question(command=DONE)))
        assert decode_answer(connection.makefile("rb").readline()).ok
        wait_until(lambda: lone.succession.relieved, what="it is relieved")
        with pytest.raises(incumbent.NoIncumbent):
            incumbent.ask(path, Party(version="9.9.9"))
        assert hold(lock) is None
        socket.close(found.lock)
        wait_until(lambda: hold(lock) is not None, what="nobody has the lock")


def test_who_has_gone_before_the_answer_leaves_no_trace(lone: LoneSuccession):
    """Nor does one that says more than its question."""
    question = encode_question(request(Party(version="9.9.9", instance="7-a")))
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(lone.paths.succession_socket))
        connection.sendall(question + question)
        assert connection.recv(1) == b""
    assert not lone.standing_by


def test_another_form_is_refused(lone: LoneSuccession):
    """In words, and nothing has happened."""
    with pytest.raises(incumbent.IncumbentRefused, match="speaks form 2"):
        incumbent.ask(lone.paths.succession_socket, Party(form=2, version="9.9.9"))
    assert lone.programs.orders == []


def test_a_release_that_cannot_be_started(lone: LoneSuccession):
    """The operator hears why, and can ask again."""
    for _ in range(2):
        answer = ask(lone.paths.succession_socket, "upgrade", words=_COMMAND)
        assert (answer["ok"], "No such file" in str(answer["errors"])) == (False, True)
    assert lone.service.started == [tuple(_COMMAND)] * 2


def test_what_is_no_command_starts_nothing(lone: LoneSuccession):
    """A name that a search path would have to find."""
    answer = ask(lone.paths.succession_socket, "upgrade", words=["appliance"])
    assert (answer["ok"], lone.service.started) == (False, [])


@pytest.mark.parametrize(("privileged", "user", "starts"), [(True, 0, 1), (True, 7, 0), (False, 7, 1)])
def test_who_may_choose_what_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, privileged: bool, user: int, starts: int
):
    """Root; its owner where that gives no rights that an ordinary user lacks."""
    monkeypatch.setattr(
        "appliance.supervisor.succession.line_connection.peer_credentials",
        lambda _: PeerCredentials(pid=4711, user=user),
    )
    with LoneSuccession(tmp_path, privileged=privileged) as lone:
        answer = ask(lone.paths.succession_socket, "upgrade", words=_COMMAND)
        assert len(lone.service.started) == starts
        assert ("only root" in str(answer["errors"])) == (not starts)
