"""A client that lives and does not read (`oc logs | less`, Ctrl-Z) loses nothing, however long that takes."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.network.foreign_sockets import idle_options
from support.processes.processes import end
from support.processes.waiting import wait_until
from support.worker.trace import Origin, Relay, Setting, relay

from appliance.model.end_reasons import EndReason
from appliance.model.loading.loading import load

pytestmark = [pytest.mark.programs, pytest.mark.needs("curl")]

BODY = 64 << 20
CONFIG = """
api: { frontends: { front: { bind: ["127.0.0.1:9445"], pool: pool } } }
pools: { pool: { servers: { s0: { address: "127.0.0.1:1" } } } }
"""


def by_default() -> tuple[dict[str, object], dict[str, object]]:
    """Return the options towards clients and servers of a configuration that says nothing about them."""
    snapshot = load(CONFIG, source="test", number=1).snapshot
    assert snapshot is not None
    sides = snapshot.groups[0].frontends[0], snapshot.pools[0]
    front, back = ({"keepalive": each.keepalive, "tcp_user_timeout": each.tcp_user_timeout} for each in sides)
    return front, back


def test_options_by_default():
    """Both sides have keepalive with times that find a dead peer in minutes, and no limit on unread bytes."""
    front, back = by_default()
    with relay(Setting(origins=[Origin()], front=front, back=back)) as running:
        ends = running.pair()
        running.until(
            lambda: idle_options(running.worker.pid) == [(1, 60, 10, 3, 0)] * 2, "keepalive on both sides"
        )
        assert len(ends) == 2


@contextlib.contextmanager
def download(running: Relay, target: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Give a curl that takes a body from the relay's server, and is stopped as soon as it has begun to."""
    url = f"http://127.0.0.1:{running.setting.port}/"
    curl = subprocess.Popen([shutil.which("curl") or "curl", "-sS", "-o", str(target), url])
    server = running.setting.origins[0].accept()
    server.settimeout(None)
    pourer = threading.Thread(target=_pour, args=(server,), daemon=True)
    pourer.start()
    try:
        wait_until(lambda: target.exists() and target.stat().st_size, what="the body has begun")
        curl.send_signal(signal.SIGSTOP)
        yield curl
    finally:
        curl.send_signal(signal.SIGCONT)
        end(curl)
        server.close()
        pourer.join(timeout=15)


def _pour(server: socket.socket) -> None:
    with contextlib.suppress(OSError):  # of a client that is reset
        server.recv(1 << 16)
        server.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % BODY)
        for _ in range(BODY >> 20):
            server.sendall(bytes(1 << 20))


def test_paused_client_loses_nothing(tmp_path: Path):
    """With `tcp_user_timeout` the kernel resets it; without, as by default, it gets everything afterwards.

    It is paused for longer than it took where a limit was set; at full size for longer than 30 seconds.
    """
    front, back = by_default()
    with relay(Setting(origins=[Origin()], front={**front, "tcp_user_timeout": 1.0}, back=back)) as running:
        began = time.monotonic()
        with download(running, tmp_path / "limited") as curl:
            running.ended(EndReason.CLIENT_ABORT)
            took = time.monotonic() - began
            curl.send_signal(signal.SIGCONT)
            assert curl.wait(15) != 0
    pause = 40.0 if os.environ.get("E2E_FULL") else 2 * took
    with relay(Setting(origins=[Origin()], front=front, back=back)) as running:
        with download(running, tmp_path / "whole") as curl:
            time.sleep(pause)
            assert len(running.sessions()) == 1
            curl.send_signal(signal.SIGCONT)
            assert curl.wait(60) == 0
        assert (tmp_path / "whole").stat().st_size == BODY
