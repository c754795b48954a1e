"""Servers that never stop talking: they cost their own check, within its time, and nobody else anything."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import gevent
import pytest
from support.peers.hostile import PLAIN, SECURE, hostile
from support.values import certificates, snapshots
from support.values.certificates import Certificates
from support.vrrp.tracks import track

from appliance.model.check_results import CheckResult
from appliance.model.snapshot.pools import CheckStep
from appliance.model.snapshot.virtual_router import TrackKind
from appliance.net.probing.peer import MOST_BYTES
from appliance.net.probing.probe import Probe
from appliance.net.probing.tls_contexts import TlsContexts
from appliance.net.tracking.endpoint import http_track

pytestmark = pytest.mark.programs

TIMEOUT: Final = 1.5
LATE: Final = 20.0
"""Seconds by which a machine under load may be late: without its limits a check would never end."""
TURN: Final = 0.5
"""Seconds of processor time that a check may keep others waiting: much less than its timeout."""


@pytest.fixture(scope="module")
def files() -> Iterator[Certificates]:
    """Certificate for 127.0.0.1, and its authority."""
    with tempfile.TemporaryDirectory() as directory:
        yield certificates.issue(Path(directory), "127.0.0.1")


class Neighbour:
    """Another greenlet of the same loop, which notes how much processor time passes between its turns."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._loop = gevent.spawn(self._beat)

    def stop(self) -> float:
        """Return the longest time, of this thread's processor time, that it could not run."""
        self._loop.kill()
        return self.longest

    def _beat(self) -> None:
        while True:
            before = time.thread_time()
            gevent.sleep(0.01)
            self.longest = max(self.longest, time.thread_time() - before)


@pytest.mark.parametrize("kind", [*SECURE, *PLAIN])
def test_a_check_ends_in_its_time_whatever_the_server_says(files: Certificates, kind: str):
    """It fails within its one time-out, and other greenlets run all the while."""
    check = snapshots.check("https" if kind in SECURE else "http", path="/readyz", timeout=TIMEOUT)
    with hostile(kind, files) as port:
        neighbour, started = Neighbour(), time.monotonic()
        gevent.sleep(0)
        outcome = Probe(check, "127.0.0.1", port, TlsContexts()).run()
        gevent.sleep(0.02)
        assert time.monotonic() - started < TIMEOUT + LATE
        assert neighbour.stop() < TURN
    assert not outcome.passed
    late, flood = (CheckResult.L6TOUT, CheckResult.L7TOUT), (CheckResult.L6RSP, CheckResult.L7RSP)
    assert outcome.result in (late if kind == "drip" else flood)


@pytest.mark.parametrize("kind", [*SECURE, *PLAIN])
def test_a_check_that_talks_ends_in_its_time(files: Certificates, kind: str):
    """What is expected may be costly to look for: the check fails all the same, and others run meanwhile."""
    step = CheckStep(send="PING\r\n", expect_rstring="(a|b|x)*x(a|b|x){200}c$")
    check = snapshots.check("tls" if kind in SECURE else "tcp", steps=(step,), timeout=TIMEOUT)
    with hostile(kind, files) as port:
        neighbour, started = Neighbour(), time.monotonic()
        gevent.sleep(0)
        outcome = Probe(check, "127.0.0.1", port, TlsContexts()).run()
        gevent.sleep(0.02)
        assert time.monotonic() - started < TIMEOUT + LATE
        assert neighbour.stop() < TURN
    assert not outcome.passed


def test_a_flood_says_what_it_was(files: Certificates):
    """The detail that operators see has the bytes that were read: no more than one read past the limit."""
    check = snapshots.check("https", path="/readyz", timeout=TIMEOUT)
    with hostile("hello-requests", files) as port:
        outcome = Probe(check, "127.0.0.1", port, TlsContexts()).run()
    assert outcome.result is CheckResult.L6RSP
    words = outcome.detail.split()
    assert (words[:3], words[4:6]) == (["no", "end", "after"], ["bytes", "in"])
    assert MOST_BYTES < int(words[3]) <= MOST_BYTES + 4096


def test_a_body_without_an_end_does_not_matter(files: Certificates):
    """The status line is all that is read."""
    with hostile("body", files) as port:
        check = snapshots.check("http", path="/readyz", timeout=TIMEOUT)
        assert Probe(check, "127.0.0.1", port, TlsContexts()).run().result is CheckResult.L7OK


@pytest.mark.parametrize("kind", [*SECURE, *PLAIN])
def test_what_is_tracked_cannot_hold_the_tracker(files: Certificates, kind: str):
    """A look at such a URL is down within the track's timeout, and other tracks are looked at meanwhile."""
    with hostile(kind, files) as port:
        url = f"{'https' if kind in SECURE else 'http'}://127.0.0.1:{port}/"
        subject = http_track(
            track(kind=TrackKind.HTTP, target=url, timeout=TIMEOUT, expect=((200, 399),)), TlsContexts()
        )
        neighbour, started = Neighbour(), time.monotonic()
        gevent.sleep(0)
        seen = subject.look()
        gevent.sleep(0.02)
        assert time.monotonic() - started < TIMEOUT + LATE
        assert neighbour.stop() < TURN
        subject.close()
    assert not seen.up
