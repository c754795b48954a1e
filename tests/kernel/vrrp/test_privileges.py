"""With few rights or none: two capabilities are enough, and without them it says which are missing."""

import pytest
from support.vrrp.vrrp_field import VIP, Field
from support.vrrp.vrrp_node import VrrpNode, router

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "setpriv", "tcpdump", root=True),
    pytest.mark.slow("real timers of several routers"),
]


def _only(*capabilities: str) -> tuple[str, ...]:
    """Return the command that runs another one as root with only these capabilities."""
    return ("setpriv", "--bounding-set", ",".join(["-all", *(f"+{name}" for name in capabilities)]))


def test_two_capabilities_are_enough(ground: Field):
    """With CAP_NET_ADMIN and CAP_NET_RAW alone it serves, and says once what real time it was refused."""
    with (
        VrrpNode(ground.one, router(priority=150), through=_only("net_admin", "net_raw")) as ours,
        VrrpNode(ground.two, router(priority=100)) as peer,
    ):
        ours.wait_for("active")
        ground.wait_for_holder(ground.one)
        peer.wait_for("backup")
        assert ours.ask("status")["missing"] == []
        assert ours.log().count("realtime-refused") == 1
        ours.stop()
        ground.wait_for_holder(ground.two)


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        (("net_raw",), ["CAP_NET_ADMIN"]),
        (("net_admin",), ["CAP_NET_RAW"]),
        ((), ["CAP_NET_ADMIN", "CAP_NET_RAW"]),
    ],
)
def test_what_is_missing_is_said(ground: Field, given: tuple[str, ...], missing: list[str]):
    """Without a capability it stays up in fault, with the names of what is missing in status and log."""
    with VrrpNode(ground.one, router(), through=_only(*given)) as ours:
        ours.wait_for("fault")
        assert ours.ask("status")["missing"] == missing
        assert all(name in str(ours.status()["fault_reasons"]) for name in missing)
        assert all(name in ours.log() for name in missing)
        assert not ground.one.holds(VIP)
        assert not ground.capture.adverts()
        assert ours.stop() == 0
