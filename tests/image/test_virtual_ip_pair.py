"""Two containers share a virtual IP, and what a client sees of a crash, beside keepalived."""

from collections.abc import Callable

import pytest
from support.machines.container_site import VIP, Site
from support.machines.podman import measured
from support.vrrp.keepalived import Instance, Keepalived
from support.vrrp.vip_client import VipClient, serve, short_name

pytestmark = [
    pytest.mark.image,
    pytest.mark.needs("podman", "runc", "mmdebstrap", "ip", "keepalived", root=True),
    pytest.mark.slow("two containers and a crash"),
]

_FIRST, _SECOND = 150, 100
"""Priorities."""


def _crash(around: Site, kill: Callable[[], None]) -> float:
    """Let the first node die, and return the seconds for which the client had no answer."""
    with VipClient(around.client, VIP) as client:
        client.wait_for_answer_by(short_name(around.one))
        first = client.mark()
        around.one.isolate()
        kill()
        client.wait_for_answer_by(short_name(around.two))
        client.wait_for_more(50)
        return client.stop().since(first).gap


def _keepalived(around: Site) -> float:
    with (
        Keepalived(around.one, Instance(priority=_FIRST)) as active,
        Keepalived(around.two, Instance(priority=_SECOND)) as other,
    ):
        active.wait_for("MASTER")
        other.wait_for("BACKUP")
        gap = _crash(around, active.kill)
    around.one.ip("address", "delete", f"{VIP}/24", "dev", "eth0")
    around.one.rejoin()
    return gap


def _ours(around: Site) -> float:
    first = around.write(around.config(priority=_FIRST), name="first")
    second = around.write(around.config(priority=_SECOND), name="second")
    with around.container(around.one, config=first) as active, around.container(around.two, config=second):
        around.serves(around.one.address)
        around.serves(around.two.address)
        gap = _crash(around, active.kill)
        around.serves(VIP)  # and not only the machine answers
        return gap


def test_crash_of_the_active(around: Site):
    """The second container answers the client when the machine of the first one dies, as keepalived does."""
    serve(around.one, around.two)
    theirs, ours = _keepalived(around), _ours(around)
    measured(
        f"crash of the active machine, advert 100 ms: no answer for {ours:.2f} s, keepalived {theirs:.2f} s"
    )
