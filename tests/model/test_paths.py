"""`model.paths`: three roots can be moved, and everything else lies below them."""

from dataclasses import replace
from pathlib import Path

import pytest

from appliance.model.paths import Paths

pytestmark = pytest.mark.pure


def test_defaults_are_the_documented_places():
    """Without any variable the roots are those of the documentation."""
    paths = Paths.from_environment({})

    assert [str(each) for each in (paths.config, paths.runtime, paths.state)] == [
        "/etc/appliance/appliance.yaml",
        "/run/appliance",
        "/var/lib/appliance",
    ]


def test_environment_moves_the_roots_and_passes_them_on():
    """A child that gets `environment()` has the same roots."""
    paths = Paths(config=Path("/a.yaml"), runtime=Path("/b"), state=Path("/c"))

    assert Paths.from_environment(paths.environment()) == paths


def test_foreign_files_and_sockets_are_passed_on():
    """A program looks at the files that `run` was told, and listens where it was told."""
    paths = Paths(
        haproxy=(Path("/h.cfg"), Path("/conf.d")),
        keepalived=Path("/k.conf"),
        reload_sockets=(Path("/a"), Path("/b")),
    )

    assert Paths.from_environment(paths.environment()) == paths
    assert paths.operators_files == (paths.config, Path("/h.cfg"), Path("/conf.d"), Path("/k.conf"))


def test_relative_places_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A program has another working directory than whoever named the places."""
    monkeypatch.chdir(tmp_path)
    given = Paths(config=Path("c"), runtime=Path("r"), state=Path("s"), haproxy=(Path("h"), Path("d")))

    found = replace(given, reload_sockets=(Path("a"),), keepalived=Path("k")).absolute()

    assert [each.parent for each in (found.config, found.runtime, found.state)] == [tmp_path] * 3
    assert (found.haproxy, found.keepalived) == ((tmp_path / "h", tmp_path / "d"), tmp_path / "k")
    assert found.reload_sockets == (tmp_path / "a",)


def test_an_empty_variable_moves_nothing():
    """A variable set to nothing counts as not set."""
    assert Paths.from_environment({"APPLIANCE_CONFIG": ""}) == Paths()


def test_names_below_the_roots():
    """Every name has its place: sockets, boards and snapshots at run time, what outlives a boot in state."""
    paths = Paths(config=Path("/c.yaml"), runtime=Path("/run"), state=Path("/state"))
    names = [
        paths.reload_socket,
        paths.supervisor_socket,
        paths.accepted_for_readers,
        paths.health_board,
        paths.health_connect_failures,
        paths.lock,
        paths.succession_socket,
        paths.take_overs,
        paths.accepted,
        paths.last_good,
        paths.operator_states,
        paths.operator_weights,
        paths.history,
        paths.found_servers,
        paths.kept_found_servers,
        paths.given_ports,
        paths.program_starts,
        paths.reload_counts,
        paths.events,
        paths.event_board("health"),
        paths.worker_events("proxy-api", 3, 0),
        paths.vrrp_board,
        paths.linger_lock,
        paths.announce_lock,
        paths.bird_config,
        paths.bird_control,
        paths.bird_log,
        paths.conntrackd_config,
        paths.conntrackd_control,
        paths.conntrackd_lock,
        paths.conntrackd_log,
        paths.owned_addresses,
        paths.control("health"),
        paths.snapshot(7),
        paths.worker_control("proxy-api", 3, 0),
        paths.worker_board("proxy-api", 3, 0),
        paths.heartbeat("health"),
        paths.worker_heartbeat("proxy-api", 3, 0),
        paths.ended_workers("proxy-api"),
    ]

    assert [str(each) for each in names] == [
        "/run/reload.sock",
        "/run/supervisor.sock",
        "/run/accepted-for-readers.json",
        "/run/health.board",
        "/run/health.doubts",
        "/run/appliance.lock",
        "/run/succession.sock",
        "/run/take-overs.json",
        "/run/accepted.json",
        "/state/last-good.json",
        "/state/operator-states.json",
        "/state/operator-weights.json",
        "/state/history.ring",
        "/run/found-servers.json",
        "/state/found-servers.json",
        "/state/given-ports.json",
        "/run/program-starts.json",
        "/run/reload-counts.json",
        "/state/events.jsonl",
        "/run/health.events",
        "/run/worker-proxy-api-3-0.events",
        "/run/vrrp.board",
        "/run/linger.lock",
        "/run/announce.lock",
        "/run/bird.conf",
        "/run/bird.ctl",
        "/run/bird.log",
        "/run/conntrackd.conf",
        "/run/conntrackd.ctl",
        "/run/conntrackd.lock",
        "/run/conntrackd.log",
        "/run/owned-addresses.json",
        "/run/health.control",
        "/run/snapshots/7.json",
        "/run/worker-proxy-api-3-0.control",
        "/run/worker-proxy-api-3-0.board",
        "/run/health.heartbeat",
        "/run/worker-proxy-api-3-0.heartbeat",
        "/run/proxy-api.ended-workers.json",
    ]


def test_places_of_another_root():
    """The same names, for a file system that is mounted somewhere."""
    paths = Paths().below(Path("/mnt"))

    assert paths.config == Path("/mnt/etc/appliance/appliance.yaml")
    assert paths.guest_report == Path("/mnt/run/appliance/guest.json")
    assert Paths().below(Path("/")) == Paths()


def test_the_command_for_supervisord_can_be_pasted():
    """It names the socket from the root on, wherever it is typed."""
    assert Paths(runtime=Path("/run/x")).supervisorctl == "supervisorctl -s unix:///run/x/supervisor.sock"
    assert Paths(runtime=Path("x")).supervisorctl == f"supervisorctl -s unix://{Path.cwd()}/x/supervisor.sock"
