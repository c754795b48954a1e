"""The commands that hear of a virtual router's states."""

import pytest
from support.values.snapshots import virtual_router

from appliance.core.tracking.notify_commands import commands, fifo_line
from appliance.core.vrrp.election import RouterState
from appliance.model.snapshot.virtual_router import Notify

pytestmark = pytest.mark.pure

NOTIFY = Notify(
    active=("up", "now"), backup=("down",), fault=("broken",), stop=("gone",), any=(), user=None, timeout=1.0
)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (RouterState.ACTIVE, ("up", "now")),
        (RouterState.BACKUP, ("down",)),
        (RouterState.FAULT, ("broken",)),
        (RouterState.INITIALIZE, ("gone",)),
    ],
)
def test_each_state_has_its_command(state: RouterState, words: tuple[str, ...]):
    """The command for one state gets its configured arguments only."""
    assert commands(virtual_router(notify=NOTIFY), state, priority=7) == (words,)


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (RouterState.ACTIVE, "MASTER"),
        (RouterState.BACKUP, "BACKUP"),
        (RouterState.FAULT, "FAULT"),
        (RouterState.INITIALIZE, "STOP"),
    ],
)
def test_the_command_for_any_state_is_told_which(state: RouterState, word: str):
    """It gets keepalived's four arguments after its own."""
    notify = Notify(active=(), backup=(), fault=(), stop=(), any=("tell", "me"), user=None, timeout=1.0)
    router = virtual_router("web", notify=notify)
    assert commands(router, state, priority=7) == (("tell", "me", "INSTANCE", "web", word, "7"),)


def test_no_command_is_none():
    """Without commands nothing is run."""
    assert commands(virtual_router(), RouterState.ACTIVE, priority=7) == ()


def test_a_fifo_is_told_as_keepalived_does():
    """The name stands in quotes, for readers that were written for it."""
    router = virtual_router("web", notify=NOTIFY)
    assert fifo_line(router, RouterState.FAULT, priority=7) == 'INSTANCE "web" FAULT 7'
    assert fifo_line(router, RouterState.INITIALIZE, priority=0) == 'INSTANCE "web" STOP 0'
