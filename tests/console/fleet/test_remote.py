"""Commands on several nodes at once, with shells of this machine: what comes out, deadlines, limits."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes.waiting import wait_until

from appliance.console.fleet.remote import RemoteCommand, closed_at_the_end, wait, why

pytestmark = pytest.mark.programs

LONG = 60.0


@pytest.fixture
def begun() -> Iterator[list[RemoteCommand]]:
    """Give a list of commands, which are ended."""
    commands: list[RemoteCommand] = []
    yield commands
    for each in commands:
        each.close()


def shell(script: str, *, here: bool = False, longest: int = 1 << 20) -> RemoteCommand:
    """Begin a script as a command of a node."""
    return RemoteCommand("lb-0", ["sh", "-c", script], os.environ, here=here, longest=longest)


def ended(command: RemoteCommand) -> bool:
    """Return whether nothing more is expected of it."""
    return not command.is_running


def test_much_goes_in_and_comes_out(begun: list[RemoteCommand]):
    """More than fits into a pipe, in both directions at once, for two commands at once."""
    data = bytes(range(256)) * 2048
    begun += [shell("cat; echo done >&2; exit 3"), shell("cat")]
    for each in begun:
        each.send(data[:1000])
        each.send(data[1000:], last=True)
    wait(begun, ended, seconds=LONG)
    assert [bytes(each.output) for each in begun] == [data, data]
    assert [each.status for each in begun] == [3, 0]
    assert begun[0].errors == "done"
    assert why(begun[0]) == "done"


def test_one_that_does_not_read_costs_nothing(begun: list[RemoteCommand]):
    """It has ended before it has all: its status counts."""
    begun.append(shell("exit 4"))
    begun[0].send(bytes(1 << 20), last=True)
    wait(begun, ended, seconds=LONG)
    assert (begun[0].status, why(begun[0])) == (4, "its command ended with 4")


def test_one_that_says_too_much_is_ended(begun: list[RemoteCommand]):
    """The limit is named, and the process is gone."""
    begun.append(shell("exec cat /dev/zero", longest=1000))
    wait(begun, ended, seconds=LONG)
    assert why(begun[0]) == "it answers more than 1000 bytes"
    assert begun[0].status is None


def test_one_that_is_late_is_ended_alone(begun: list[RemoteCommand]):
    """The other one has answered, and each was told when it was done."""
    told: list[RemoteCommand] = []
    begun += [shell("echo late >&2; exec sleep 1000"), shell("true")]
    wait(begun[1:], ended, seconds=LONG)
    wait(begun, ended, seconds=1.0, progress=told.append)
    assert told == [begun[1], begun[0]]
    assert why(begun[0]).startswith("no answer within 1 s")
    assert begun[1].status == 0


def test_one_whose_answer_is_bad_can_be_given_up_while_it_is_looked_at(begun: list[RemoteCommand]):
    """It is awaited no longer, whatever the look returns."""
    begun.append(shell("echo bad; exec sleep 1000"))

    def is_done(command: RemoteCommand) -> bool:
        if command.output:
            command.give_up("cannot be understood")
        return False

    wait(begun, is_done, seconds=LONG)
    assert why(begun[0]) == "cannot be understood"


def test_what_a_grandchild_holds_open_is_not_awaited(begun: list[RemoteCommand]):
    """As OpenSSH's master connection holds standard error: the end of the process is the end."""
    begun.append(shell("sleep 1000 <&- >&- & echo $!; exit 0"))
    wait(begun, ended, seconds=LONG)
    assert begun[0].status == 0
    os.kill(int(begun[0].output), 9)


@pytest.mark.parametrize("here", [True, False])
def test_the_end_of_input_is_seen_when_it_is_let_go(tmp_path: Path, *, here: bool):
    """A command of this node ends by itself then, after what it has to do; one of ssh's is ended."""
    note = tmp_path / "note"
    command = shell(f"cat; echo end >{note}", here=here)
    with closed_at_the_end([command]):
        command.send(b"a")
    assert command.status is None
    if here:
        wait_until(note.exists, what="it continues to its end")


def test_without_a_connection_it_is_unreachable(begun: list[RemoteCommand]):
    """255 without a word is ssh's; after a word the connection was lost; here it is a status as others."""
    begun += [shell("echo no route >&2; exit 255"), shell("echo a; echo gone >&2; exit 255")]
    begun.append(shell("exit 255", here=True))
    wait(begun, ended, seconds=LONG)
    assert [each.is_unreachable for each in begun] == [True, False, False]
    assert [why(each) for each in begun] == [
        "no route",
        "the connection was lost: gone",
        "its command ended with 255",
    ]


def test_a_terminal_s_sequences_are_shown_as_text(begun: list[RemoteCommand]):
    """What a node says cannot move the cursor of who reads it."""
    begun.append(shell(r"printf '\033[2Jx' >&2; exit 1"))
    wait(begun, ended, seconds=LONG)
    assert why(begun[0]) == r"\x1b[2Jx"


def test_a_refused_key_is_no_node_that_is_down(begun: list[RemoteCommand]):
    """What ssh reports of it is named, also before its last line; after an answer it means nothing."""
    denied = "echo 'root@lb-0: Permission denied (publickey).' >&2; echo closed >&2; exit 255"
    begun += [shell(denied), shell(f"echo a; {denied}"), shell("echo 'no route' >&2; exit 255")]
    wait(begun, ended, seconds=LONG)
    assert [each.denial for each in begun] == ["root@lb-0: Permission denied (publickey).", None, None]
    assert why(begun[0]) == "root@lb-0: Permission denied (publickey). (does `ssh lb-0` log you in?)"
