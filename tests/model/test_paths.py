"""`model.paths`: three roots can be moved, and everything else lies below them."""

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
        paths.accepted,
        paths.last_good,
        paths.operator_states,
        paths.vrrp_board,
        paths.owned_addresses,
        paths.control("health"),
        paths.snapshot(7),
        paths.worker_control("proxy-api", 3, 0),
        paths.worker_board("proxy-api", 3, 0),
        paths.heartbeat("health"),
        paths.worker_heartbeat("proxy-api", 3, 0),
    ]

    assert [str(each) for each in names] == [
        "/run/reload.sock",
        "/run/supervisor.sock",
        "/run/accepted-for-readers.json",
        "/run/health.board",
        "/run/health.doubts",
        "/run/appliance.lock",
        "/run/accepted.json",
        "/state/last-good.json",
        "/state/operator-states.json",
        "/run/vrrp.board",
        "/run/owned-addresses.json",
        "/run/health.control",
        "/run/snapshots/7.json",
        "/run/worker-proxy-api-3-0.control",
        "/run/worker-proxy-api-3-0.board",
        "/run/health.heartbeat",
        "/run/worker-proxy-api-3-0.heartbeat",
    ]


def test_places_of_another_root():
    """The same names, for a file system that is mounted somewhere."""
    paths = Paths().below(Path("/mnt"))

    assert paths.config == Path("/mnt/etc/appliance/appliance.yaml")
    assert paths.guest_report == Path("/mnt/run/appliance/guest.json")
    assert Paths().below(Path("/")) == Paths()
