"""`appliance why` for virtual IPs between real routers: each situation is brought about, then explained."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes.waiting import wait_until
from support.vrrp.vrrp_field import VIP, Field, agreed, pair
from support.vrrp.vrrp_node import VrrpNode, router, track

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "tcpdump", root=True)]

Told = dict[str, object]
_COMMAND = Path(sys.executable).parent / "appliance"


def wait_for(node: VrrpNode, state: str, holds: Callable[[Told], object] = bool, *, name: str = VIP) -> Told:
    """Return the first explanation with this state for which `holds` does."""
    found: list[Told] = []

    def look() -> bool:
        found[:] = [_told(node, name)]
        return found[0]["state"] == state and bool(holds(found[0]))

    wait_until(look, what=f"the explanation of {state} (last: {found})", timeout=120.0)
    return found[0]


def _told(node: VrrpNode, name: str) -> Told:
    done = subprocess.run(
        [_COMMAND, "why", name, "--json"],
        env={**os.environ, **node.paths.environment()},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    values: Told = json.loads(done.stdout)
    return values


def text(explanation: Told) -> str:
    """Return everything that is told."""
    return json.dumps(explanation)


@pytest.mark.slow("whole appliances on a segment of their own")
def test_active_and_backup_by_priority(ground: Field):
    """The one is active by the election; the other is backup because of a peer, and where to change that."""
    with agreed(ground) as (one, two):
        active = wait_for(one, "active", name="api")
        assert (active["kind"], active["decided_by"]) == ("vip", "election")
        assert "Its priority here is 150." in text(active)
        assert "appliance vip move api" in text(active)
        backup = wait_for(two, "backup", lambda each: each["decided_by"] == "peer")
        assert f"{ground.one.address} is active with priority 150, and this node has 100" in text(backup)


@pytest.mark.slow("whole appliances on a segment of their own")
def test_held_back_by_a_track(ground: Field, tmp_path: Path):
    """It would be active with what a track adds: the track is named, and what it looks at."""
    missing = tmp_path / "ready"
    tracks = (track("exists", str(missing), name="api-ready", weight=100),)
    with pair(ground, router(priority=150), router(priority=100, track=tracks)) as (_, two):
        found = wait_for(two, "backup", lambda each: each["decided_by"] == "track")
        assert "this node has 100, not 200, because of api-ready" in text(found)
        assert str(missing) in text(found)


@pytest.mark.slow("whole appliances on a segment of their own")
def test_fault_by_the_interface(ground: Field):
    """Without a carrier nothing can be held."""
    with VrrpNode(ground.one, router()) as one:
        one.wait_for("active")
        ground.one.unplug()
        found = wait_for(one, "fault")
        assert found["decided_by"] == "interface"
        assert "eth0" in str(found["answer"])


@pytest.mark.slow("whole appliances on a segment of their own")
def test_fault_by_a_track(ground: Field, tmp_path: Path):
    """A track without a weight means fault."""
    tracks = (track("exists", str(tmp_path / "ready"), name="api-ready", weight=None),)
    with VrrpNode(ground.one, router(track=tracks)) as one:
        found = wait_for(one, "fault")
        assert found["decided_by"] == "track"
        assert "api-ready" in text(found)


@pytest.mark.slow("whole appliances on a segment of their own")
def test_moved_by_the_operator(ground: Field):
    """It has the higher priority and does not come back: the command that reclaims it is named."""
    with agreed(ground, hand_over=60.0) as (one, _):
        assert one.move()["ok"]
        found = wait_for(one, "backup", lambda each: each["decided_by"] == "operator")
        assert "moved it away" in str(found["answer"])
        assert "appliance vip reclaim api" in text(found)
        assert one.ask("reclaim", name="api")["ok"]
        found = wait_for(one, "active", lambda each: "It became backup" in text(each))
        assert re.search(
            r"It became backup at [\d:]+: it was handed over \(peer [^ ]+, priority", text(found)
        )


@pytest.mark.slow("whole appliances on a segment of their own")
def test_two_actives(ground: Field):
    """Either drops what the other says, both are active: each names the other."""
    passwords = [router(version=2, advert=1.0, password=each) for each in ("ours", "theirs")]
    with VrrpNode(ground.one, passwords[0]) as one, VrrpNode(ground.two, passwords[1]) as two:
        for node, other in ((one, ground.two), (two, ground.one)):
            found = wait_for(node, "two-actives", lambda each, other=other: other.address in text(each))
            assert found["decided_by"] == "peer"
            assert "split brain" in str(found["answer"])


@pytest.mark.slow("whole appliances on a segment of their own")
def test_nobody_answers(ground: Field):
    """Without the program vrrp nobody knows, and that is said."""
    with VrrpNode(ground.one, router()) as one:
        one.wait_for("active")
        one.kill()
        found = wait_for(one, "unknown")
        assert found["decided_by"] == "program"
        assert "It became active at " in text(found["history"])  # type: ignore[arg-type]  # JSON
