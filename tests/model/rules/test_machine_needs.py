"""What virtual routers need of their machine, and where the file says so."""

from dataclasses import replace

import pytest
from support.values.shared_ips import shared_ip
from support.values.snapshots import frontend, redirect, snapshot, virtual_router
from support.vrrp.tracks import track

from appliance.model.operator_events import EventSeverity
from appliance.model.rules.machine_needs import (
    MachineNeed,
    MachineNeedKind,
    needs,
    nftables_paths,
    notify_files,
    notify_needs,
    shared_needs,
)
from appliance.model.snapshot.frontends import Group
from appliance.model.snapshot.linger import Linger
from appliance.model.snapshot.snapshot import NotifyTarget
from appliance.model.snapshot.virtual_router import HmacKey, Notify, TrackKind, VirtualRoute

pytestmark = pytest.mark.pure


def test_interfaces_and_commands_are_needed():
    """Its own interface, those of routes and tracks, scripts, and the commands that are run on a change."""
    router = virtual_router(
        name="api",
        interface="ens192",
        elsewhere=(("fd00::8/64", "ens192"), ("10.1.0.8/24", "ens256")),
        routes=tuple(
            VirtualRoute(to=f"10.{number}.0.0/16", interface=each)
            for number, each in enumerate(("ens192", "ens161", "ens161"))
        ),
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
        MachineNeed(path=(*at, "addresses"), kind=MachineNeedKind.INTERFACE, name="ens256"),
        MachineNeed(path=(*at, "routes"), kind=MachineNeedKind.INTERFACE, name="ens161"),
        MachineNeed(
            path=(*at, "track", "uplink", "interface"), kind=MachineNeedKind.INTERFACE, name="ens224"
        ),
        MachineNeed(
            path=(*at, "track", "quick", "script"), kind=MachineNeedKind.COMMAND, name="/usr/local/bin/check"
        ),
        MachineNeed(path=(*at, "notify", "active"), kind=MachineNeedKind.COMMAND, name="logger"),
        MachineNeed(path=(*at, "notify", "any"), kind=MachineNeedKind.COMMAND, name="/x"),
    ]


def test_tracks_of_shared_addresses():
    """The command of a script; other kinds need nothing."""
    tracks = (track("quick", kind=TrackKind.SCRIPT, target="/usr/local/bin/check"), track(kind=TrackKind.TCP))
    at = ("shared_ips", "ingress-all", "track", "quick", "script")
    assert list(shared_needs([shared_ip(track=tracks)])) == [
        MachineNeed(path=at, kind=MachineNeedKind.COMMAND, name="/usr/local/bin/check")
    ]


def test_who_is_told_needs_commands_files_and_sockets():
    """The command of one, the secrets of another, and a local socket of syslog; a server is nothing here."""
    targets = [
        NotifyTarget(name=name, severity=EventSeverity.INFO, timeout=1.0, **given)
        for name, given in {
            "pager": {"command": ("/bin/page", "now")},
            "chat": {"webhook_file": "/etc/url", "token_file": "/etc/token"},
            "here": {"syslog": "/dev/log"},
            "there": {"syslog": "udp://10.0.0.9:514"},
        }.items()
    ]
    assert list(notify_needs(targets)) == [
        MachineNeed(path=("notify", "pager", "command"), kind=MachineNeedKind.COMMAND, name="/bin/page")
    ]
    assert list(notify_files(targets)) == [
        (("notify", "chat", "webhook_file"), "/etc/url"),
        (("notify", "chat", "token_file"), "/etc/token"),
        (("notify", "here", "syslog"), "/dev/log"),
    ]


def test_redirects_are_found_where_the_file_has_them():
    """They need nftables; a frontend without one is nothing here."""
    frontends = (frontend("plain"), frontend("kube-api", redirect=redirect()))
    given = snapshot(groups=(Group(name="api", workers=1, frontends=frontends),))
    assert nftables_paths(given) == (("api", "frontends", "kube-api", "redirect"),)
    lingers = replace(given, linger=Linger(longest=60.0, port=29446, keys=(HmacKey(id=1, secret="ab" * 32),)))
    assert nftables_paths(lingers) == (("api", "frontends", "kube-api", "redirect"), ("linger",))
