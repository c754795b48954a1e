"""The commands of HAProxy's stats socket."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.server_states import AdminState
from appliance.model.server_weights import OperatorWeight
from appliance.wire.haproxy.commands import (
    GetWeight,
    Refused,
    SetState,
    SetWeight,
    ShowServersState,
    ShowStat,
    ShutdownSessions,
    Simple,
    commands,
    help_text,
)

pytestmark = pytest.mark.pure

M0 = {"pool": "masters", "server": "m0"}


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (b"show info", Simple.SHOW_INFO),
        (b"  show   stat ", ShowStat()),
        (b"show stat masters 7 -1", ShowStat(proxy="masters")),
        (b"show stat -1 4 2", ShowStat(kinds=4, server=2)),
        (b"show stat 3 -1 -1", ShowStat(proxy="3")),
        (b"show servers state", ShowServersState()),
        (b"show servers state masters", ShowServersState(pool="masters")),
        (b"show sess", Simple.SHOW_SESSIONS),
        (b"show version", Simple.SHOW_VERSION),
        (b"show table", Simple.SHOW_TABLES),
        (b"get weight masters/m0", GetWeight(**M0)),
        (b"set server masters/m0 state drain", SetState(**M0, state=AdminState.DRAIN)),
        (b"set server masters/m0 state maint", SetState(**M0, state=AdminState.MAINT)),
        (b"set server masters/m0 state ready", SetState(**M0, state=AdminState.READY)),
        (b"set server masters/m0 weight 7", SetWeight(**M0, weight=OperatorWeight(value=7, percent=False))),
        (b"set weight masters/m0 50%", SetWeight(**M0, weight=OperatorWeight(value=50, percent=True))),
        (b"enable server masters/m0", SetState(**M0, state=AdminState.READY)),
        (b"disable server masters/m0", SetState(**M0, state=AdminState.MAINT)),
        (b"shutdown sessions server masters/m0", ShutdownSessions(**M0)),
        (b"help", Simple.HELP),
        (b"prompt", Simple.PROMPT),
        (b"quit", Simple.QUIT),
    ],
)
def test_what_is_understood(line: bytes, command: object):
    """Each command that there is, with its arguments."""
    assert commands(line) == [command]


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (b"set server masters state ready", "Require 'backend/server'.\n"),
        (b"set server", "Require 'backend/server'.\n"),
        (b"set weight masters", "Require 'backend/server'.\n"),
        (b"get weight", "Require 'backend/server'.\n"),
        (b"enable server /m0", "Require 'backend/server'.\n"),
        (b"shutdown sessions server masters/", "Require 'backend/server'.\n"),
        (
            b"set server masters/m0 state bad",
            "'set server <srv> state' expects 'ready', 'drain' and 'maint'.\n",
        ),
        (b"set server masters/m0 state", "'set server <srv> state' expects 'ready', 'drain' and 'maint'.\n"),
        (b"set server masters/m0", "usage: set server <backend>/<server> state | weight\n"),
        (b"set server masters/m0 addr 10.0.0.1", "usage: set server <backend>/<server> state | weight\n"),
        (b"set weight masters/m0", "Require <weight> or <weight%>.\n"),
        (b"set weight masters/m0 x", "Empty weight string empty or preceded by garbage"),
        (b"set weight masters/m0 500", "Absolute weight can only be between 0 and 256 inclusive.\n"),
        (b"set weight masters/m0 -3", "Absolute weight can only be between 0 and 256 inclusive.\n"),
        (b"set weight masters/m0 7x", "Trailing garbage in weight string"),
        (b"set weight masters/m0 50%%", "Trailing garbage in weight string"),
        (b"set weight masters/m0 -3%", "Relative weight must be positive.\n"),
        (b"show stat masters x -1", "No such proxy.\n"),
    ],
)
def test_what_is_refused_in_haproxys_words(line: bytes, answer: str):
    """Scripts compare these answers."""
    assert commands(line) == [Refused(answer=answer)]


@pytest.mark.parametrize(
    "line", [b"foo", b"add acl x", b"@1 show version", b"reload", b"shutdown", b"show stat typed"]
)
def test_what_is_unknown(line: bytes):
    """HAProxy lists what may have been meant; what begins alike is in the list."""
    (found,) = commands(line)
    assert isinstance(found, Refused)
    head, *likely = found.answer.splitlines()
    assert head == "Unknown command, but maybe one of the following ones is a better match:"
    assert ("show version" in found.answer) is line.startswith(b"show")
    assert likely[-1].split() == ["quit", ":", "disconnect"]


def test_an_empty_command_is_answered_with_all():
    """As in HAProxy; `help` has the same list."""
    first, second = commands(b"show version;")
    assert first is Simple.SHOW_VERSION
    assert isinstance(second, Refused)
    assert second.answer.startswith("Unknown command. Please enter one of the following commands only:\n")
    assert second.answer.splitlines()[1:] == help_text().splitlines()[1:]


def test_several_commands_on_a_line():
    """Semicolons separate them, in order."""
    assert commands(b"show info;show stat") == [Simple.SHOW_INFO, ShowStat()]


@given(st.binary(max_size=300))
def test_any_line_holds_commands(line: bytes):
    """No bytes make it fail; there are as many commands as parts."""
    assert len(commands(line)) == line.count(b";") + 1
