"""The program `health` begins, ends, and goes on after kill -9."""

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.health.health import COMMAND, SLOW, Health, newer, of, server
from support.network.ports import free_port
from support.peers.backend import Backend
from support.processes.waiting import wait_until

from appliance.model.server_states import HealthVerdict

pytestmark = pytest.mark.programs


@pytest.fixture
def health() -> Iterator[Health]:
    """Give a runtime directory; at the end the program is ended."""
    with Health() as made:
        yield made


@pytest.fixture
def backend() -> Iterator[Backend]:
    """Give a server whose /readyz can be steered."""
    with Backend("master-0") as made:
        yield made


def test_a_killed_program_goes_on_where_it_was(health: Health, backend: Backend):
    """After kill -9 no verdict, no since and no counter is lost, and nothing is logged as a change."""
    dead = free_port()
    health.accept(of([server("good", backend, SLOW), server("dead", dead, SLOW)]))
    health.start()
    before = [health.wait_for("good", HealthVerdict.UP), health.wait_for("dead", HealthVerdict.DOWN)]
    logged = len(health.events("server-up", "server-down"))
    health.kill()
    assert [health.server("good"), health.server("dead")] == before
    health.start()
    checked = health.wait_for("dead", HealthVerdict.DOWN, by=2)
    assert (checked.streak, checked.since) == (2, pytest.approx(before[1].since, abs=0.5))
    again = health.wait_for("good", HealthVerdict.UP)
    assert again.since == pytest.approx(before[0].since, abs=0.5)
    assert len(health.events("server-up", "server-down")) == logged


def test_a_restart_in_the_middle_of_a_fall_counts_on(health: Health, backend: Backend):
    """The streak is on the board: one failure before and one after a restart are two in a row."""
    health.accept(of([server("master-0", backend, replace(SLOW, interval=0.1))]))
    health.start()
    health.wait_for("master-0", HealthVerdict.UP)
    backend.ready(500)
    health.wait_for("master-0", HealthVerdict.UP, by=1)
    health.kill()
    health.start()
    assert health.wait_for("master-0", HealthVerdict.DOWN).streak == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="an own hosts file needs root")
def test_a_restart_moves_no_server_of_several_addresses(health: Health, backend: Backend, tmp_path: Path):
    """After kill -9 a name's address stays, though another one is the resolver's first answer by now."""
    hosts = tmp_path / "hosts"
    health.command = ["unshare", "--mount", "sh", "-c", f"mount --bind {hosts} /etc/hosts && exec {COMMAND}"]
    check = replace(SLOW, address="127.0.0.1")
    health.accept(of([server("master-0", backend, check, host="many.test")]))
    hosts.write_text("127.0.0.2 many.test\n127.0.0.3 many.test\n")
    health.start()
    wait_until(lambda: health.wait_for("master-0", HealthVerdict.UP).host, what="it has an address")
    first = health.wait_for("master-0", HealthVerdict.UP)
    health.kill()
    hosts.write_text("127.0.0.3 many.test\n127.0.0.2 many.test\n")
    health.start()
    wait_until(lambda: newer(health, "master-0", first.checked_at), what="it is checked again")
    after = health.wait_for("master-0", HealthVerdict.UP)
    assert (first.host, after.host) == ("127.0.0.2", "127.0.0.2")
    assert after.since == pytest.approx(first.since, abs=0.5)
    assert len(health.events("server-address", "server-up")) == 2


def test_a_broken_start_is_a_start(health: Health):
    """With an unreadable snapshot, board and operator file it says so and waits for a configuration."""
    health.accept(of([]))
    health.paths.accepted.write_bytes(b"{")
    health.paths.health_board.write_bytes(b"nonsense")
    health.paths.state.mkdir()
    health.paths.operator_states.write_bytes(b"{")
    health.start()
    names = ["board-unreadable", "operator-states-unreadable", "snapshot-unreadable"]
    assert [event["event"] for event in health.events(*names)] == names
    health.apply(of([server("a", 1, None)]))
    assert health.wait_for("a", HealthVerdict.UP)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_end_is_clean(health: Health, backend: Backend, number: signal.Signals):
    """TERM and INT end it with 0 and without its socket; the board stays for the workers."""
    health.accept(of([server("master-0", backend), server("nowhere", 1, host="nowhere.invalid")]))
    health.start()
    before = health.wait_for("master-0", HealthVerdict.UP)
    health.process.send_signal(number)
    assert health.process.wait(10) == 0
    assert not health.paths.control("health").exists()
    assert health.wait_for("master-0", HealthVerdict.UP).since == pytest.approx(before.since, abs=0.5)
    assert "Traceback" not in health.log()


def test_a_second_program_leaves_the_first_alone(health: Health, backend: Backend):
    """A board has one writer: another health in the same directory says so and ends."""
    health.accept(of([server("master-0", backend)]))
    health.start()
    assert health.spawn().wait(15) == 1
    assert [event["event"] for event in health.events("already-running")] == ["already-running"]
    assert health.ask("status").values["pid"] == health.process.pid


def test_without_its_board_the_program_ends(health: Health, backend: Backend):
    """A bug in publishing ends it with a traceback and 1: the next one goes on from the board."""
    broken = (
        "import sys; from appliance.health import checks; from appliance.programs import health; "
        "checks.record = None; sys.exit(health.main())"
    )
    health.command = [sys.executable, "-c", broken]
    health.accept(of([server("master-0", backend)]))
    assert health.spawn().wait(15) == 1
    assert [event["event"] for event in health.events("publishing-crashed")] == ["publishing-crashed"]
