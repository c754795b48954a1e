"""Changes of the nodes that a router has learnt by BGP, under streams whose every byte is checked."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from support.announce.bgp_field import BgpField
from support.announce.routers import BirdRouter, FrrRouter, Router
from support.linger.linger_field import PORT
from support.linger.shared_field import SHARED, SHARED6
from support.network.checked_streams import CheckedStreams
from support.processes.waiting import wait_until
from support.supervisor.release import Release

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", "bird", "vtysh", root=True),
    pytest.mark.slow("whole appliances behind a router that speaks BGP"),
]

_FULL: Final = os.environ.get("E2E_FULL") == "1"
_COUNT: Final = 1000 if _FULL else 40
"""Streams of each version of IP."""
_PERIOD: Final = 1.0 if _FULL else 0.1
_LEAVING: Final = ("one", "two", "three", "four", "five") if _FULL else ("one",)
_STOPPING: Final = ("two", "three", "four", "five") if _FULL else ("two",)
_DYING: Final = ("three", "four") if _FULL else ("three",)
_MARK: Final = "203.0.114.0/24"


@contextmanager
def streams_of(field: BgpField) -> Iterator[CheckedStreams]:
    """Open streams to both addresses, at all nodes."""
    with CheckedStreams(field.client, port=PORT, period=_PERIOD) as streams:
        streams.connect(SHARED, _COUNT)
        streams.connect(SHARED6, _COUNT)
        yield streams


def others(field: BgpField, name: str) -> list[str]:
    """Return the names of all nodes but one."""
    return [each for each in field.machines if each != name]


@pytest.mark.parametrize("kind", [FrrRouter, BirdRouter])
def test_changes_of_five_nodes(kind: type[Router]):
    """Nodes leave, return, stop and start, and no stream ends; a dead one takes its own streams along."""
    with BgpField(5, kind) as field, streams_of(field) as streams:
        by = streams.report().by
        assert set(by) == set(field.machines)
        for name in _LEAVING:
            field.nodes[name].appliance.command("leave")
            field.wait_for(*others(field, name))
            streams.go_on()
            assert field.nodes[name].appliance.reload(field.config(name))["ok"]
            field.wait_for(*field.machines)
            streams.go_on()
            assert streams.report().by == by
        for name in _STOPPING:
            _restart(field, streams, name)
        assert streams.report().ended == {}
        for name in _DYING:
            by, before = streams.report().by, sum(streams.report().ended.values())
            field.machines[name].isolate()
            field.wait_for(*others(field, name))
            wait_until(
                lambda: sum(streams.report().ended.values()) >= before + by[name],  # noqa: B023  # called at once
                what="its streams have ended",
                timeout=60.0,
            )
            streams.go_on()
            assert sum(streams.report().ended.values()) == before + by[name]
            field.machines[name].rejoin()
            field.wait_for(*field.machines)
            field.wait_until_ready()


def _restart(field: BgpField, streams: CheckedStreams, name: str) -> None:
    """Stop a node when its own streams have finished, and start it again."""
    node = field.nodes[name]
    node.appliance.command("leave")
    field.wait_for(*others(field, name))
    streams.go_on()
    streams.finish(name)
    node.appliance.stop(patience=60.0)
    streams.go_on()
    with node.node.inside():
        node.appliance.start()
    assert node.appliance.reload(field.config(name))["ok"]  # until then it has left
    field.wait_for(*field.machines)
    field.wait_until_ready()
    streams.go_on()
    streams.connect(SHARED, 5)


def test_an_upgrade_in_place_is_not_seen(tmp_path: Path):
    """The router changes no route, and no stream ends or is served by another node."""
    release = Release(tmp_path / "newer", "9.9.9")
    with BgpField(2, FrrRouter) as field, streams_of(field) as streams:
        by = streams.report().by
        field.wait_until_ready()
        field.speaker.watch()
        wait_until(lambda: _is_watched(field), what="routes are watched")
        made = field.nodes["one"].appliance
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
