"""Connections to shared addresses while nodes leave and return: BGP, `linger` and the proxies together."""

import contextlib
from collections.abc import Iterator

import pytest
from support.announce.routers import BirdRouter, FrrRouter, Router
from support.announce.shared_node import NODES_ASN, neighbors
from support.linger.linger_field import PORT
from support.linger.shared_field import SHARED, SHARED6, SharedField
from support.network.checked_streams import CheckedStreams
from support.processes.waiting import wait_until

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", "bird", root=True)]

_COUNT = 40


class BgpField(SharedField):
    """Nodes of a SharedField that announce their addresses by BIRD."""

    def config(self, name: str, *more: str) -> dict[str, object]:
        """Return what a SharedField has, with the neighbours and a track."""
        routers = (self.router.address, self.router.address6)
        found = super().config(name, *more)
        shared = {"addresses": [f"{SHARED}/32", f"{SHARED6}/128"], "drain": "1s"}
        shared["track"] = {"servers": {"pool": "own", "interval": "100ms"}}  # type: ignore[assignment]  # JSON
        return {
            **found,
            "shared_ips": {"all": shared},
            "bgp": {"asn": NODES_ASN, "neighbors": neighbors(routers)},
        }


@contextlib.contextmanager
def field_of(kind: type[Router], count: int) -> Iterator[tuple[BgpField, Router]]:
    """Run so many nodes, all of which the router has learnt."""
    with contextlib.ExitStack() as stack:
        field = BgpField(count)
        machines = tuple(field.machines.values())
        peers = [address for each in machines for address in (each.address, each.address6)]
        router = stack.enter_context(kind(field.router, peers, asn=NODES_ASN))  # type: ignore[call-arg]  # both have it
        stack.enter_context(field)
        for address in (SHARED, SHARED6):
            router.wait_for(address, *machines)
        yield field, router


@pytest.mark.promise("docs/shared-ips.md", "nodes that leave and return end no connection")
@pytest.mark.parametrize(
    ("kind", "count"),
    [
        (BirdRouter, 2),
        pytest.param(FrrRouter, 3, marks=pytest.mark.slow("another router, and more nodes")),
    ],
)
def test_nodes_that_leave_and_return_end_nothing(kind: type[Router], count: int):
    """The router takes each node out of its path, and back; all streams go on where they are."""
    with (
        field_of(kind, count) as (field, router),
        CheckedStreams(field.client, port=PORT, period=0.1) as streams,
    ):
        streams.connect(SHARED, _COUNT)
        streams.connect(SHARED6, _COUNT)
        before = streams.report().by
        assert set(before) == set(field.machines)
        for name, node in field.nodes.items():
            others = [each for key, each in field.machines.items() if key != name]
            node.appliance.command("leave")
            for address in (SHARED, SHARED6):
                router.wait_for(address, *others)
            streams.go_on()
            assert node.appliance.reload(node.appliance.config)["ok"]
            for address in (SHARED, SHARED6):
                router.wait_for(address, *field.machines.values())
            streams.go_on()
        assert streams.report().ended == {}
        assert streams.report().by == before


@pytest.mark.promise("docs/shared-ips.md", "`leave --wait` waits for connections of shared addresses")
@pytest.mark.slow("three nodes, one of which is emptied")
def test_leave_waits_for_the_connections_of_shared_addresses():
    """With --wait it returns when none is left here; the last node that serves says that it is."""
    with field_of(BirdRouter, 2) as (field, router):
        one, two = field.nodes.values()
        with CheckedStreams(field.client, port=PORT, period=0.1) as streams:
            streams.connect(SHARED, _COUNT)
            late = one.appliance.command("leave", "--wait", "--timeout", "0", check=False)
            assert late.returncode == 1
            assert f"connections are left: {SHARED} " in late.stderr
        assert one.appliance.command("leave", "--wait", "--timeout", "60").returncode == 0
        router.wait_for(SHARED, field.machines["two"])
        assert "No other node" not in late.stderr
        field.machines["one"].isolate()
        wait_until(lambda: not field.shared("two")[0]["nodes"], what="two is alone")
        wait_until(
            lambda: "No other node is known to serve all" in two.appliance.command("leave").stderr,
            what="it says so",
        )


@pytest.mark.promise("docs/shared-ips.md", "a crash ends only the connections of that node")
@pytest.mark.slow("waits for a dead node")
def test_a_crash_ends_only_its_own():
    """BFD finds the dead node; the others reset its connections, and none of theirs ends."""
    with (
        field_of(FrrRouter, 3) as (field, router),
        CheckedStreams(field.client, port=PORT, period=0.1) as streams,
    ):
        streams.connect(SHARED, _COUNT)
        streams.connect(SHARED6, _COUNT)
        before = streams.report().by
        field.machines["two"].isolate()
        for address in (SHARED, SHARED6):
            router.wait_for(address, field.machines["one"], field.machines["three"])
        wait_until(
            lambda: sum(streams.report().ended.values()) >= before["two"], what="its own end", timeout=30.0
        )
        streams.go_on()
        assert streams.report().by == {name: count for name, count in before.items() if name != "two"}
