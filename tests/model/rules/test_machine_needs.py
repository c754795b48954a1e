"""What virtual routers need of their machine, and where the file says so."""

import pytest
from support.values.snapshots import virtual_router
from support.values.tracks import track

from appliance.model.rules.machine_needs import MachineNeed, MachineNeedKind, needs
from appliance.model.snapshot.virtual_router import Notify, TrackKind

pytestmark = pytest.mark.pure


def test_interfaces_and_commands_are_needed():
    """Its own interface and those that it tracks, scripts, and the commands that are run on a change."""
    router = virtual_router(
        name="api",
        interface="ens192",
        track=(
            track("uplink", kind=TrackKind.INTERFACE, target="ens224"),
            track("quick", target="/usr/local/bin/check", arguments=("--quick",)),
            track("web", kind=TrackKind.HTTP, target="http://localhost/"),
        ),
        notify=Notify(
            active=("logger", "active"), backup=(), fault=(), stop=(), any=("/x",), user=None, timeout=1.0
        ),
    )
    at = ("virtual_ips", "api")
    assert list(needs([router])) == [
        MachineNeed(path=(*at, "interface"), kind=MachineNeedKind.INTERFACE, name="ens192"),
        MachineNeed(
            path=(*at, "track", "uplink", "interface"), kind=MachineNeedKind.INTERFACE, name="ens224"
        ),
        MachineNeed(
            path=(*at, "track", "quick", "script"), kind=MachineNeedKind.COMMAND, name="/usr/local/bin/check"
        ),
        MachineNeed(path=(*at, "notify", "active"), kind=MachineNeedKind.COMMAND, name="logger"),
        MachineNeed(path=(*at, "notify", "any"), kind=MachineNeedKind.COMMAND, name="/x"),
    ]
