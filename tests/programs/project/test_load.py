"""The load generator of the end-to-end tests notices what they claim does not happen."""

import pytest
from support.load.load import Load
from support.network.ports import free_port
from support.peers.backend import Backend
from support.processes.waiting import wait_until

pytestmark = [pytest.mark.programs, pytest.mark.slow("builds or measures")]


def test_nobody_listening_is_refused():
    """Each connection to a port without a listener counts as refused, a session's as ended."""
    with Load(port=free_port(), sessions=3, rate=50) as load:
        wait_until(lambda: load.report().failures.get("refused", 0) > 5, what="refusals are counted")
        report = load.report()
    assert report.completed == 0
    assert [session.how for session in report.ended] == ["refused"] * 3
    assert set(report.failures) == {"refused"}


def test_a_server_that_goes_away_ends_its_sessions():
    """Sessions are alive until their server dies, and then all of them are over."""
    with Backend("alone") as backend, Load(port=backend.port, sessions=5) as load:
        load.wait_for_sessions()
        assert {session.server for session in load.report().living} == {"alone"}
        backend.stop()
        wait_until(lambda: len(load.report().ended) == 5, what="every session has ended")
        assert load.report().living == []


def test_every_connection_is_asked_for_its_own_answer():
    """Connections complete at about the rate that was asked for, each answered by the server's name."""
    with Backend("alone") as backend, Load(port=backend.port, rate=100) as load:
        wait_until(lambda: load.report().completed >= 50, what="50 connections")
        load.stop_new()
        report = load.report()
        assert report.failures == {}
        assert set(report.servers) == {"alone"}
        assert backend.counts()["line"] >= report.completed
