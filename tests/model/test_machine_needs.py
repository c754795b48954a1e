"""What virtual routers need of their machine, and where the file says so."""

import pytest
from support.snapshots import virtual_router
from support.tracks import track

from appliance.model.machine_needs import Need, NeedKind, needs
from appliance.model.virtual_router import Notify, TrackKind

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
        Need(path=(*at, "interface"), kind=NeedKind.INTERFACE, name="ens192"),
        Need(path=(*at, "track", "uplink", "interface"), kind=NeedKind.INTERFACE, name="ens224"),
        Need(path=(*at, "track", "quick", "script"), kind=NeedKind.COMMAND, name="/usr/local/bin/check"),
        Need(path=(*at, "notify", "active"), kind=NeedKind.COMMAND, name="logger"),
        Need(path=(*at, "notify", "any"), kind=NeedKind.COMMAND, name="/x"),
    ]
