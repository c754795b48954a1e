"""Changes of the nodes that a router has learnt by BGP, under streams whose every byte is checked."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from support.announce.bgp_field import BgpField
from support.announce.routers import BirdRouter, FrrRouter
from support.linger.node_changes import changes_of
from support.linger.shared_field import SHARED, SHARED6, SharedField
from support.processes.processes import kill
from support.processes.waiting import wait_until
from support.supervisor.release import Release

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", "bird", "vtysh", root=True),
    pytest.mark.slow("whole appliances behind a router that speaks BGP"),
]

_FULL: Final = os.environ.get("E2E_FULL") == "1"
_LEAVING: Final = ("one", "two", "three", "four", "five") if _FULL else ("one",)
_STOPPING: Final = ("two", "three", "four", "five") if _FULL else ("two",)
_DYING: Final = ("three", "four") if _FULL else ("three",)
_MARK: Final = "203.0.114.0/24"


@pytest.mark.promise("docs/shared-ips.md", "five nodes leave, return, stop and start, and end no connection")
@pytest.mark.parametrize(
    "made",
    [
        partial(BgpField, 5, FrrRouter),
        pytest.param(partial(BgpField, 5, BirdRouter), marks=pytest.mark.full("another router")),
        # No daemon here installs resilient groups: the route follows the kernel's tables by hand.
        partial(SharedField, 5, resilient=True),
    ],
    ids=["frr", "bird", "resilient"],
)
def test_changes_of_five_nodes(made: Callable[[], SharedField]):
    """Nodes leave, return, stop and start, and no stream ends; a dead one takes its own streams along."""
    with made() as field:
        field.wait_for(*field.machines)
        with changes_of(field) as changes:
            for name in _LEAVING:
                changes.leave_and_return(name)
            for name in _STOPPING:
                changes.restart(name)
            assert changes.streams.report().ended == {}
            for name in _DYING:
                changes.die(name)


@pytest.mark.promise("docs/shared-ips.md", "an upgrade in place is no event at a router")
def test_kills_and_an_upgrade_in_place_are_not_seen(tmp_path: Path):
    """Of `linger` and `announce`: the router changes no route, no stream ends or is at another node."""
    release = Release(tmp_path / "newer", "9.9.9")
    with BgpField(2, FrrRouter) as field, changes_of(field) as changes:
        streams = changes.streams
        by = streams.report().by
        field.wait_until_ready()
        field.speaker.watch()
        wait_until(lambda: _is_watched(field), what="routes are watched")
        made = field.nodes["one"].appliance
        for each in ("linger", "announce"):
            pid = made.program_pid(each)
            assert pid
            kill(pid)
            made.wait_for_restart(each, pid)
            field.wait_until_ready()
        former = made.process
        with field.machines["one"].inside():
            made.process = release.run(made.paths, made.log_file)
        wait_until(lambda: made.events("appliance-taken-over"), what="it is upgraded", timeout=120.0)
        assert former is not None
        assert former.wait(120) == 0
        field.wait_until_ready()
        streams.go_on()
        before = field.speaker.changes(_MARK)
        wait_until(
            lambda: _is_watched(field) and len(field.speaker.changes(_MARK)) > len(before),
            what="the monitor has kept up",
        )
        assert field.speaker.changes(SHARED) == field.speaker.changes(SHARED6) == []
        assert streams.report().ended == {}
        assert streams.report().by == by


def _is_watched(field: BgpField) -> bool:
    """Add and remove a route of no concern at the router; return whether the monitor has told one."""
    field.router.batch(f"route replace {_MARK} dev lo", f"route delete {_MARK} dev lo")
    return bool(field.speaker.changes(_MARK))
