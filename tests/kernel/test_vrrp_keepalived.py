"""Ours beside Debian's keepalived, in both roles: who has the address, and what was on the wire."""

from dataclasses import dataclass

import pytest
from support.keepalived import Instance, Keepalived
from support.namespaces import Node
from support.vrrp_field import VIP, VIP6, Field
from support.vrrp_node import VrrpNode, router

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "keepalived", "tcpdump", root=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One form of the protocol, for a keepalived and for ours alike."""

    version: int = 3
    family: int = 4
    unicast: bool = False
    password: str | None = None

    @property
    def address(self) -> str:
        """The virtual address."""
        return VIP6 if self.family == 6 else VIP

    @property
    def prefixed(self) -> str:
        """The virtual address with its prefix length."""
        return f"{self.address}/{64 if self.family == 6 else 24}"

    @property
    def advert(self) -> float:
        """The shortest interval that is comfortable."""
        return 1.0 if self.version == 2 else 0.1

    def primary(self, node: Node) -> str:
        """Return where a node's advertisements come from."""
        if self.family == 4:
            return node.address
        return node.address6 if self.unicast else node.link_local

    def keepalived(self, here: Node, there: Node, *, priority: int) -> Keepalived:
        """Start a keepalived."""
        instance = Instance(
            version=self.version,
            advert=self.advert,
            addresses=(self.prefixed,),
            password=self.password,
            priority=priority,
            source=self.primary(here) if self.unicast else None,
            peers=(self.primary(there),) if self.unicast else (),
        )
        return Keepalived(here, instance)

    def ours(self, here: Node, there: Node, *, priority: int) -> VrrpNode:
        """Start ours."""
        made = router(
            version=self.version,
            advert=self.advert,
            addresses=(self.prefixed,),
            password=self.password,
            priority=priority,
            source=self.primary(here) if self.unicast else None,
            peers=(self.primary(there),) if self.unicast else (),
        )
        return VrrpNode(here, made)

    def on_the_wire(self, here: Node, there: Node) -> dict[str, object]:
        """Return what every advertisement of a node has to have."""
        multicast = "ff02::12" if self.family == 6 else "224.0.0.18"
        return {
            "mac": here.mac,
            "source": self.primary(here),
            "destination": self.primary(there) if self.unicast else multicast,
            "ttl": 255,
            "version": self.version,
            "router_id": 42,
            "interval": self.advert,
            "addresses": (self.address,),
            "checksum": "message" if self.version == 2 else "pseudo-header",
            "auth_type": 1 if self.password else 0,
            "password": (self.password or "").encode(),
            "trailer": b"",
        }


FORMS = {
    "v2": Form(version=2),
    "v2-password": Form(version=2, password="secret"),  # noqa: S106  # the keyword that it tests
    "v2-unicast": Form(version=2, unicast=True),
    "v3": Form(),
    "v3-unicast": Form(unicast=True),
    "v3-ipv6": Form(family=6),
    "v3-ipv6-unicast": Form(family=6, unicast=True),
}
forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())


@forms
def test_backup_of_keepalived(ground: Field, form: Form):
    """Beside a better keepalived ours is silent; when that one stops ours takes over, and is told so."""
    with (
        form.keepalived(ground.two, ground.one, priority=150) as peer,
        form.ours(ground.one, ground.two, priority=100) as ours,
    ):
        peer.wait_for("MASTER")
        ours.wait_for("backup")
        ground.wait_for_holder(ground.two, form.address)
        ground.wait_for_adverts(3, source=form.primary(ground.two))
        assert ground.senders() == {form.primary(ground.two)}
        peer.terminate()
        ground.wait_for_holder(ground.one, form.address)
        ground.wait_for_adverts(1, source=form.primary(ground.one))
    _same_on_the_wire(ground, form, ground.two, ground.one, priorities={150, 0})
    _same_on_the_wire(ground, form, ground.one, ground.two, priorities={100})
    _announced(ground, form, ground.one)


@forms
def test_active_beside_keepalived(ground: Field, form: Form):
    """A worse keepalived accepts our advertisements and stays silent; when ours stops it takes over."""
    with form.ours(ground.one, ground.two, priority=150) as ours:
        ours.wait_for("active")
        with form.keepalived(ground.two, ground.one, priority=100) as peer:
            peer.wait_for("BACKUP")
            ground.wait_for_adverts(4, source=form.primary(ground.one))
            ground.wait_for_holder(ground.one, form.address)
            assert ground.senders() == {form.primary(ground.one)}
            assert ours.stop() == 0
            peer.wait_for("MASTER")
            ground.wait_for_holder(ground.two, form.address)
            assert peer.states() == ["BACKUP", "MASTER"]
    _same_on_the_wire(ground, form, ground.one, ground.two, priorities={150, 0})
    _announced(ground, form, ground.one)


def _same_on_the_wire(ground: Field, form: Form, here: Node, there: Node, *, priorities: set[int]) -> None:
    expected = form.on_the_wire(here, there)
    if form.unicast and here is ground.two:
        del expected["ttl"]  # keepalived leaves the hop limit of IPv6 unicast to the kernel: 64
    sent = ground.capture.adverts(source=form.primary(here))
    assert sent == ground.capture.adverts(**expected)
    assert {each.priority for each in sent} == priorities


def _announced(ground: Field, form: Form, node: Node) -> None:
    told = ground.capture.announcements(mac=node.mac, address=form.address)
    assert {each.form for each in told} == {"neighbour" if form.family == 6 else "request"}
    assert len(told) >= 5
    # Only after the advertisement: who had the address before has left it by then.
    assert told[0].at >= ground.capture.adverts(source=form.primary(node))[0].at
