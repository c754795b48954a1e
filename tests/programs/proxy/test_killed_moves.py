"""`kill -9` of either worker in the middle of a hand-over, at every step: what is lost, counted.

A killed worker's own sessions are lost with it. Of the others only those are that were on their way: given up
by the one, and not yet taken by the other.
"""

import os
import signal
import socket
from collections import Counter
from contextlib import ExitStack

import pytest
from support.network.ports import free_port
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.values.snapshots import bind, frontend, group, pool, server, snapshot
from support.worker.interposed_control import interposed
from support.worker.lone_worker import generations

from appliance.wire.lines.moving_sessions import MOST_SESSIONS

pytestmark = [pytest.mark.programs, pytest.mark.slow("generations of real workers under load")]

_SESSIONS = 2 * MOST_SESSIONS + 20
"""They move in three batches, of which the second one is disturbed."""

_MOVED = MOST_SESSIONS
_LEFT = _SESSIONS - 2 * MOST_SESSIONS


@pytest.mark.parametrize(
    ("victim", "command", "moment", "living"),
    [
        ("old", "offer", "asked", _MOVED),
        ("old", "offer", "answered", _MOVED),
        ("old", "take", "asked", _MOVED + MOST_SESSIONS),  # the word was said, and the kernel passes it on
        ("old", "take", "answered", _MOVED + MOST_SESSIONS),
        ("new", "offer", "asked", _SESSIONS - _MOVED),
        ("new", "offer", "answered", _SESSIONS - _MOVED),
        ("new", "take", "asked", _LEFT),  # the only step at which a batch is lost that nobody owns
        ("new", "take", "answered", _LEFT),
    ],
)
def test_a_kill_in_a_hand_over_costs_what_the_killed_worker_had(
    victim: str, command: str, moment: str, living: int
):
    """`living` go on: those that the other worker has, and those that go back to it."""
    port = free_port()
    with Backend("master-0") as master, ExitStack() as stack:
        wanted = snapshot(
            groups=[group(frontends=[frontend(binds=[bind(port)])])],
            pools=[pool(servers=[server(port=master.port)])],
        )
        old, new = stack.enter_context(generations(wanted))
        new.process.send_signal(signal.SIGSTOP)  # all clients come to the old one
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            for _ in range(_SESSIONS)
        ]
        assert sum(map(_answers, clients)) == _SESSIONS
        new.process.send_signal(signal.SIGCONT)
        seen = Counter[tuple[str, str]]()

        def disturb(*step: str) -> None:
            seen[step[0], step[1]] += 1
            if step == (command, moment) and seen[command, moment] == 2:
                killed = {"old": old, "new": new}[victim]
                os.kill(killed.pid, signal.SIGKILL)
                killed.process.wait()

        place = old.paths.worker_control("proxy-api", 3, 0)
        stack.enter_context(interposed(place, new.control, disturb))
        assert old.ask("drain", deadline=2e9)["ok"] is True
        assert old.ask("move", generation=3, workers=[0])["ok"] is True
        wait_until(lambda: seen[command, moment] >= 2, what="the second batch is disturbed")
        assert sum(map(_answers, clients)) == living


def _answers(client: socket.socket) -> bool:
    """Say whether a session still relays: a line comes back."""
    try:
        client.sendall(b"line 1\n")
        return client.recv(100) == b"master-0 1\n"
    except (ConnectionResetError, BrokenPipeError):
        return False
