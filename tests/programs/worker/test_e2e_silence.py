"""With `on_down: auto` a server's sessions go by how it fails: kept while it answers, closed in silence."""

import hashlib
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.load.load import Load
from support.peers.cluster import Cluster, cluster
from support.processes.waiting import wait_until
from support.values.body import checksum

pytestmark = pytest.mark.programs

_SESSIONS = 30
_SICK = "master-1"
_CHECK = {
    "type": "http",
    "path": "/readyz",
    "interval": "500ms",
    "fast_interval": "250ms",
    "timeout": "1s",
    "fall": 2,
    "rise": 2,
}
_SIZE = 20_000_000


@contextmanager
def _silent(made: Cluster) -> Iterator[None]:
    """Stop the sick master's process: the kernel accepts for it, and nothing is ever answered."""
    os.kill(made.master(_SICK).pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(made.master(_SICK).pid, signal.SIGCONT)


def _in_two_generations(made: Cluster, load: Load) -> None:
    """Have sessions on every master in a draining generation, and as many in the accepting one."""
    load.wait_for_sessions()
    assert made.appliance.reload(made.config(revision=1))["ok"] is True
    load.open_sessions(_SESSIONS)
    load.wait_for_sessions(2 * _SESSIONS)


def _of_sick(load: Load) -> tuple[int, int]:
    """Return how many sessions of the sick master live, and how many have ended."""
    sessions = [each for each in load.report().sessions if each.server == _SICK]
    ended = sum(bool(each.ended) for each in sessions)
    return len(sessions) - ended, ended


@pytest.mark.promise("survives", "a server")
def test_a_silent_server_loses_its_sessions_in_every_generation():
    """Nobody else would tell their clients; the others' sessions stay."""
    with (
        cluster(workers=1, drain=60.0, pool={"check": _CHECK}) as made,
        Load(port=made.port, sessions=_SESSIONS) as load,
    ):
        _in_two_generations(made, load)
        living, _ = _of_sick(load)
        assert living == 2 * _SESSIONS // 3
        with _silent(made):
            wait_until(lambda: _of_sick(load) == (0, living), what="its sessions are closed", timeout=30.0)
            assert {(each.server, each.how) for each in load.report().ended} == {(_SICK, "reset")}


@pytest.mark.slow("many connections, or real time-outs")
def test_a_server_that_falls_silent_after_it_was_taken_out_loses_its_sessions_then():
    """While it answers 500 they stay, in a draining generation too; its silence ends them."""
    with (
        cluster(workers=1, drain=60.0, pool={"check": _CHECK}) as made,
        Load(port=made.port, sessions=_SESSIONS) as load,
    ):
        _in_two_generations(made, load)
        made.master(_SICK).ready(500)
        made.appliance.wait_for_event("server-down", lambda event: event["server"] == _SICK)
        living, ended = _of_sick(load)
        assert (living, ended) == (2 * _SESSIONS // 3, 0)
        with _silent(made):
            made.appliance.wait_for_event("server-unreachable", lambda event: event["server"] == _SICK)
            wait_until(lambda: _of_sick(load) == (0, living), what="its sessions are closed", timeout=30.0)
            assert {(each.server, each.how) for each in load.report().ended} == {(_SICK, "reset")}


@pytest.mark.slow("many connections, or real time-outs")
def test_a_download_from_a_server_that_says_it_stops_comes_through():
    """It is down for everybody new, and the client that reads from it gets every byte."""
    with cluster(masters=1, workers=1, pool={"check": _CHECK}) as made:
        with socket.create_connection(("127.0.0.1", made.port), timeout=30) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            client.sendall(f"give {_SIZE}\n".encode())
            received = bytearray(client.recv(65536))
            made.master("master-0").ready(500)
            made.appliance.wait_for_event("server-down")
            wait_until(lambda: _refused(made.port), what="nobody new is served")
            while chunk := client.recv(1 << 20):
                received += chunk
        assert hashlib.sha256(received).hexdigest() == checksum(_SIZE)


def _refused(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            client.sendall(b"who\n")
            return client.recv(100) == b""
    except ConnectionResetError:  # also while it is made: a handshake may end after the worker's reset
        return True
