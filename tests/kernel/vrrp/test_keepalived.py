"""Ours beside Debian's keepalived, in both roles: who has the address, and what was on the wire."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.network.namespaces import Node
from support.processes.waiting import wait_until
from support.vrrp.keepalived import Instance, Keepalived
from support.vrrp.vip_client import Outage, VipClient, serve
from support.vrrp.vrrp_field import VIP, Field
from support.vrrp.vrrp_node import VrrpNode, router

from appliance.model.snapshot.virtual_router import Checksum

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "keepalived", "tcpdump", root=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One form of the protocol, for a keepalived and for ours alike, as the virtual router `number`."""

    number: int = 42
    version: int = 3
    family: int = 4
    unicast: bool = False
    password: str | None = None

    @property
    def name(self) -> str:
        """Name of the virtual router on both sides."""
        return f"vr{self.number}"

    @property
    def address(self) -> str:
        """The virtual address."""
        return f"fd00::{self.number + 100}" if self.family == 6 else f"192.0.2.{self.number + 100}"

    @property
    def prefixed(self) -> str:
        """The virtual address with its prefix length."""
        return f"{self.address}/{64 if self.family == 6 else 24}"

    @property
    def advert(self) -> float:
        """A short interval: version 2 knows whole seconds only."""
        return 1.0 if self.version == 2 else 0.1

    def primary(self, node: Node) -> str:
        """Return where a node's advertisements come from."""
        if self.family == 4:
            return node.address
        return node.address6 if self.unicast else node.link_local

    def settings(self, here: Node, there: Node, *, priority: int) -> dict[str, object]:
        """Return what both sides call alike."""
        return {
            "name": self.name,
            "router_id": self.number,
            "version": self.version,
            "advert": self.advert,
            "addresses": (self.prefixed,),
            "password": self.password,
            "priority": priority,
            "source": self.primary(here) if self.unicast else None,
            "peers": (self.primary(there),) if self.unicast else (),
        }

    def on_the_wire(self, here: Node, there: Node) -> dict[str, object]:
        """Return what every advertisement of a node has to have."""
        multicast = "ff02::12" if self.family == 6 else "224.0.0.18"
        return {
            "mac": here.mac,
            "source": self.primary(here),
            "destination": self.primary(there) if self.unicast else multicast,
            "ttl": 255,
            "version": self.version,
            "router_id": self.number,
            "interval": self.advert,
            "addresses": (self.address,),
            "checksum": "message" if self.version == 2 else "pseudo-header",
            "auth_type": 1 if self.password else 0,
            "password": (self.password or "").encode(),
            "trailer": b"",
        }


forms = pytest.mark.parametrize(
    "forms",
    [
        # All of version 2 at a time, which takes seconds for everything.
        pytest.param(
            (
                Form(number=1, version=2),
                Form(number=2, version=2, password="secret"),  # noqa: S106  # the keyword that it tests
                Form(number=3, version=2, unicast=True),
                Form(number=4, version=2, unicast=True, password="8-bytes."),  # noqa: S106  # the same
            ),
            id="v2",
        ),
        pytest.param((Form(),), id="v3"),
        pytest.param(
            (Form(unicast=True),), id="v3-unicast", marks=pytest.mark.slow("real timers of several routers")
        ),
        pytest.param((Form(family=6),), id="v3-ipv6"),
        pytest.param(
            (Form(family=6, unicast=True),),
            id="v3-ipv6-unicast",
            marks=pytest.mark.slow("real timers of several routers"),
        ),
    ],
)


def _spoke_unheard(ground: Field, form: Form) -> list[float]:
    """Return when ours sent an advertisement though keepalived had sent one within three intervals.

    On a machine that gives keepalived no processor for so long, ours takes over for a moment, and rightly so.
    """
    sent, heard = (
        [(each.at, each.interval) for each in ground.capture.adverts(source=form.primary(node))]
        for node in (ground.one, ground.two)
    )
    return [at for at, interval in sent if any(at - 3 * interval < other <= at for other, _ in heard)]


@pytest.mark.promise("docs/virtual-ips.md", "beside keepalived in either role")
@forms
def test_backup_of_keepalived(ground: Field, forms: Sequence[Form]):
    """Beside a better keepalived ours is silent; when that one stops ours takes over, and is told so."""
    with _keepalived(ground, forms, priority=150) as peer:
        for form in forms:  # before ours, which would not wait longer than the down interval
            peer.wait_for("MASTER", form.name)
        with _ours(ground, forms, priority=100) as ours:
            for form in forms:
                ours.wait_for("backup", form.name)
                ground.wait_for_holder(ground.two, form.address)
            _wait_for_adverts(ground, forms, 2, ground.two)
            for form in forms:
                assert _spoke_unheard(ground, form) == []
            peer.terminate()
            for form in forms:
                ground.wait_for_holder(ground.one, form.address)
            _wait_for_adverts(ground, forms, 1, ground.one)
    for form in forms:
        _same_on_the_wire(ground, form, ground.two, ground.one, priorities={150, 0})
        _same_on_the_wire(ground, form, ground.one, ground.two, priorities={100})
        _announced(ground, form, ground.one)


@pytest.mark.promise("docs/virtual-ips.md", "beside keepalived in either role")
@forms
def test_active_beside_keepalived(ground: Field, forms: Sequence[Form]):
    """A worse keepalived accepts our advertisements and stays silent; when ours stops it takes over."""
    with _ours(ground, forms, priority=150) as ours:
        for form in forms:
            ours.wait_for("active", form.name)
        with _keepalived(ground, forms, priority=100) as peer:
            for form in forms:
                peer.wait_for("BACKUP", form.name)
            # More than its down interval: without ours it would have claimed by then.
            _wait_for_adverts(ground, forms, 4, ground.one)
            for form in forms:
                ground.wait_for_holder(ground.one, form.address)
                assert not ground.capture.adverts(source=form.primary(ground.two))
            assert ours.stop() == 0
            for form in forms:
                peer.wait_for("MASTER", form.name)
                ground.wait_for_holder(ground.two, form.address)
                assert peer.states(form.name) == ["BACKUP", "MASTER"]
    for form in forms:
        _same_on_the_wire(ground, form, ground.one, ground.two, priorities={150, 0})
        _announced(ground, form, ground.one)


def _keepalived(ground: Field, forms: Sequence[Form], *, priority: int) -> Keepalived:
    settings = (form.settings(ground.two, ground.one, priority=priority) for form in forms)
    return Keepalived(ground.two, *(Instance(**each) for each in settings))


def _ours(ground: Field, forms: Sequence[Form], *, priority: int) -> VrrpNode:
    settings = (form.settings(ground.one, ground.two, priority=priority) for form in forms)
    return VrrpNode(ground.one, *(router(**each) for each in settings))


def _wait_for_adverts(ground: Field, forms: Sequence[Form], number: int, node: Node) -> None:
    # They come at the same time: waiting for one is waiting for all.
    ground.wait_for_adverts(number, source=forms[-1].primary(node), router_id=forms[-1].number)


def _same_on_the_wire(ground: Field, form: Form, here: Node, there: Node, *, priorities: set[int]) -> None:
    expected = form.on_the_wire(here, there)
    if form.unicast and here is ground.two:
        del expected["ttl"]  # keepalived leaves the hop limit of IPv6 unicast to the kernel: 64
    sent = ground.capture.adverts(source=form.primary(here), router_id=form.number)
    assert sent == ground.capture.adverts(**expected)
    assert {each.priority for each in sent} == priorities


def _announced(ground: Field, form: Form, node: Node) -> None:
    told = ground.capture.announcements(mac=node.mac, address=form.address)
    assert {each.form for each in told} == {"neighbour" if form.family == 6 else "request"}
    assert len(told) >= 5
    # Only after the advertisement: who had the address before has left it by then.
    assert told[0].at >= ground.capture.adverts(source=form.primary(node), router_id=form.number)[0].at


def test_a_keepalived_with_a_virtual_mac_is_relieved_and_relieves(ground: Field):
    """A keepalived with `use_vmac` is a peer like any other, in both roles."""
    theirs = Instance(priority=100, lines=("use_vmac",))

    def on_its_mac() -> bool:
        return ground.two.holds(VIP, "vrrp.42") and not ground.one.holds(VIP)

    def only_ours() -> bool:
        return ground.one.holds(VIP) and VIP not in ground.two.run(["ip", "address"])

    with Keepalived(ground.two, theirs) as keepalived:
        keepalived.wait_for("MASTER")
        wait_until(on_its_mac, what="keepalived has the address")
        with VrrpNode(ground.one, router(priority=90)) as worse:
            worse.wait_for("backup")
            ground.wait_for_adverts(10, source=ground.two.address)
            assert worse.transitions() == ["backup"]
            assert not worse.status()["conflicts"]
            keepalived.stop()
            worse.wait_for("active")
            wait_until(only_ours, what="ours has the address")
            worse.reload(router(priority=150))
            keepalived.start()
            keepalived.wait_for("BACKUP")
            ground.wait_for_adverts(10, source=ground.one.address)
            assert (worse.state(), keepalived.state()) == ("active", "BACKUP")
            wait_until(only_ours, what="ours has the address")
            assert worse.stop() == 0
            keepalived.wait_for("MASTER")
            wait_until(on_its_mac, what="keepalived has the address")
    announced = ground.capture.announcements(address=VIP)
    assert {each.mac for each in announced} == {ground.one.mac, "00:00:5e:00:01:2a"}


def test_keepalived_2_2_refuses_the_checksum_without_pseudo_header(ground: Field):
    """Debian's keepalived drops version 3 adverts with checksum `message`: both serve, and ours says so."""
    with VrrpNode(ground.one, router(priority=150, checksum=Checksum.MESSAGE)) as ours:
        ours.wait_for("active")
        with Keepalived(ground.two, Instance(priority=100)) as peer:
            peer.wait_for("MASTER")
            wait_until(lambda: "Invalid VRRPv3 checksum" in peer.log(), what="keepalived has dropped ours")
            wait_until(lambda: '"split-brain"' in ours.log(), what="ours tells of two actives")
            assert ground.holders() == [ground.one, ground.two]
    assert {each.checksum for each in ground.capture.adverts(source=ground.one.address)} == {"message"}


@pytest.mark.slow("real timers of several routers")
def test_a_keepalived_that_loses_in_silence_leaves_no_client_in_the_dark(ground: Field):
    """After a split a client of the loser's side is served soon, though the winner never hears the loser."""
    serve(ground.one, ground.two)
    # A neighbour that TCP has confirmed is not asked for again by its own side for up to a minute.
    with ground.client.inside():
        Path("/proc/sys/net/ipv4/neigh/eth0/delay_first_probe_time").write_text("60")
    # It tells nobody, and heeds everybody: so it gives way without a word that ours could hear.
    loser = Instance(priority=100, peers=("192.0.2.250",), source=ground.two.address)
    ours = router(priority=150, peers=(ground.two.address,))
    with VrrpNode(ground.one, ours) as node, Keepalived(ground.two, loser) as peer:
        node.wait_for("active")
        peer.wait_for("BACKUP")
        with VipClient(ground.client, VIP) as client:
            client.wait_for_answer_by("one")
            marks = []
            for _ in range(3):
                ground.one.isolate()
                client.wait_for_answer_by("two")
                client.wait_for_more(1500)
                begin = client.mark()
                ground.one.rejoin()
                ground.wait_for_holder(ground.one)
                client.wait_for_answer_by("one")
                marks.append((begin, client.mark()))
            outage = client.stop()
    for begin, end in marks:
        assert Outage(probes=outage.probes[begin:end]).gap < 10.0
