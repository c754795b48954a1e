"""Two load balancers that share virtual IPs and have their kernels forward what comes there."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from support.forward.forward_field import PORT, ForwardField, let_forward
from support.network.namespaces import Segment
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

VIPS: Final = ("192.0.2.100", "fd00::100")
_ROUTERS: Final = {"api": f"{VIPS[0]}/24", "api6": f"{VIPS[1]}/64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardPair:
    """The nodes as two fields that share client and servers."""

    first: ForwardField
    second: ForwardField

    @property
    def names(self) -> tuple[str, ...]:
        """The servers."""
        return tuple(self.config(priority=1)["pools"]["servers"]["servers"])  # type: ignore[index]  # JSON

    def config(self, *, priority: int, advert: str = "100ms", **frontend: object) -> dict[str, object]:
        """Return the configuration of a node: servers of both families, and both virtual IPs."""
        six = {f"{name}v6": each for name, each in self.first.members(6).items()}
        made = self.first.config(
            pool={"servers": {**self.first.members(), **six}},
            bind=[f"{VIPS[0]}:{PORT}", f"[{VIPS[1]}]:{PORT}"],
            **frontend,
        )
        made["virtual_ips"] = {
            name: {
                "addresses": [address],
                "router_id": 42,
                "interface": "eth0",
                "version": 3,
                "advert": advert,
                "priority": priority,
                "announce": {"repeat": 1},
                "track": {"forwards": {"program": "forward", "fall": 15}},  # a restart takes nothing away
            }
            for name, address in _ROUTERS.items()
        }
        return made

    @contextmanager
    def appliances(
        self,
        *,
        advert: str = "100ms",
        unicast: bool = False,
        sections: Mapping[str, object] | None = None,
        **frontend: object,
    ) -> Iterator[tuple[Appliance, Appliance]]:
        """Run both; the first one becomes active. With `unicast` each names the other one as its peer.

        `sections` are more of the configuration's.
        """
        with ExitStack() as stack:
            one, two = (
                {**self.config(priority=priority, advert=advert, **frontend), **(sections or {})}
                for priority in (150, 100)
            )
            if unicast:
                for made, other in ((one, self.second.balancer), (two, self.first.balancer)):
                    routers = made["virtual_ips"]
                    routers["api"]["peers"] = [other.address]  # type: ignore[index]  # JSON
                    routers["api6"]["peers"] = [other.address6]  # type: ignore[index]  # JSON
            yield (
                stack.enter_context(self.first.appliance(one)),
                stack.enter_context(self.second.appliance(two)),
            )

    def wait_for_holder_alone(self, field: ForwardField) -> None:
        """Wait until this node has the virtual IPs, whatever one that cannot be reached believes."""
        wait_until(
            lambda: all(field.balancer.holds(each) for each in VIPS),
            what=f"{field.balancer.name} has the virtual IPs",
            timeout=30.0,
        )

    def wait_for_holder(self, field: ForwardField) -> None:
        """Wait until this node alone has the virtual IPs."""
        other = self.second if field is self.first else self.first
        wait_until(
            lambda: all(field.balancer.holds(each) and not other.balancer.holds(each) for each in VIPS),
            what=f"{field.balancer.name} alone has the virtual IPs",
            timeout=30.0,
        )

    def move(self, appliance: Appliance) -> None:
        """Have the active node give both virtual IPs away, once the other one takes part."""
        for name in _ROUTERS:
            wait_until(
                lambda name=name: appliance.command("vip", "move", name, check=False).returncode == 0,  # type: ignore[misc]  # mypy and defaults
                what=f"{name} moves",
                timeout=30.0,
            )


@contextmanager
def forward_pair() -> Iterator[ForwardPair]:
    """Make one, whose balancers forward packets."""
    with Segment() as segment:
        balancers = [segment.node(name) for name in ("one", "two")]
        client = segment.node("client")
        servers = {name: segment.node(name) for name in ("s1", "s2")}
        for each in balancers:
            let_forward(each)
        first = ForwardField(balancer=balancers[0], client=client, servers=servers)
        yield ForwardPair(first=first, second=ForwardField(balancer=balancers[1], client=client, servers={}))


@contextmanager
def third_node(pair: ForwardPair, **frontend: object) -> Iterator[tuple[ForwardField, Appliance]]:
    """Run one more node, which takes the virtual IPs when both others are lost."""
    balancer = pair.first.balancer.segment.node("three")
    let_forward(balancer)
    field = ForwardField(balancer=balancer, client=pair.first.client, servers={})
    with field.appliance(pair.config(priority=50, **frontend)) as appliance:
        yield field, appliance
