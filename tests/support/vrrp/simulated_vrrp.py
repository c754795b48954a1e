"""VRRP instances on a simulated machine: links, addresses, sockets and the loop hold what was done to them.

Nothing here needs a socket or a right, and time is what a test says. What is simulated behaves: an address
that was added is there until it is removed, and a packet that was put in arrives when the loop runs.
"""

import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from support.vrrp.elections import packed

from appliance.core.vrrp.election import Entered, ReceivedAdvert, RouterState, SplitBrain, UnexpectedEvent
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.loop.closer import Closer
from appliance.net.netlink.links import Link
from appliance.net.netlink.routing import Added as AddedRoutes
from appliance.net.netlink.routing import Routed, place
from appliance.net.netlink.virtual_addresses import Taken
from appliance.net.packets.frame_queue import FrameQueue
from appliance.vrrp.addresses.address_interface import AddressInterface
from appliance.vrrp.addresses.neighbour_queries import NeighbourQueries
from appliance.vrrp.addresses.peer_returns import PeerReturns
from appliance.vrrp.groups.router_group import RouterGroup
from appliance.vrrp.instance.shared_by_instances import RouterEnvironment
from appliance.vrrp.instance.vrrp_instance import VrrpInstance
from appliance.vrrp.sockets.advert_receiver import AdvertDeviation, DroppedAdvert
from appliance.vrrp.sockets.router_sockets import basis

OUR_MAC = b"\x02\0\0\0\0\x01"
THEIR_MAC = b"\x02\0\0\0\0\x02"


class Frames:
    """The queue of an interface's driver: it takes frames until it is `full`."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.full = False

    def send(self, frame: bytes) -> None:
        """Keep one."""
        if self.full:
            raise OSError(errno.ENOBUFS, "No buffer space available")
        self.sent.append(frame)


class SimulatedPort:
    """Sockets that keep the priorities that were sent, and deliver the adverts that were put into `arriving`.

    `error` is raised by everything that is done with them, while it is set.
    """

    opened = 0

    def __init__(
        self,
        router: VirtualRouter,
        *,
        interface: AddressInterface,
        source: str,
        closer: Closer,  # noqa: ARG002  # as the real one has it
        on_drop: Callable[[DroppedAdvert, float], None],
        on_deviation: Callable[[AdvertDeviation, float], None],
    ) -> None:
        SimulatedPort.opened += 1
        self._descriptor = 1_000_000 + SimulatedPort.opened
        self.router = router
        self.interface = interface
        self.source = source
        self.basis = basis(router)
        self.on_drop, self.on_deviation = on_drop, on_deviation
        self.sent: list[int] = []
        self.arriving: list[ReceivedAdvert | DroppedAdvert] = []
        self.frames = Frames()
        self.announcing = FrameQueue(self.frames)
        self.error: Exception | None = None
        self.closed = False

    def fileno(self) -> int:
        """Return a number that is nobody's."""
        return self._descriptor

    def send(self, priority: int) -> None:
        """Keep it."""
        self._fail()
        self.sent.append(priority)

    def receive(self, now: float) -> Iterator[ReceivedAdvert]:
        """Yield what has arrived, once."""
        self._fail()
        arrived, self.arriving = self.arriving, []
        for each in arrived:
            if isinstance(each, DroppedAdvert):
                self.on_drop(each, now)
            else:
                yield each

    def announce(self, repeat: int, now: float) -> int:
        """Send one frame for each address."""
        self._fail()
        return self.announcing.put([each.encode() for each in self.router.addresses] * repeat, now)

    def close(self) -> None:
        """Note it."""
        self.closed = True

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


class SimulatedAddresses:
    """The addresses on interfaces, by index; `refused` are those that the kernel does not add."""

    def __init__(self) -> None:
        self.present: set[tuple[int, str]] = set()
        self.refused: dict[str, str] = {}
        self.prepared: list[tuple[str, ...]] = []

    def prepare(self, index: int, addresses: Iterable[str], *, label: str | None) -> None:  # noqa: ARG002
        """Note what was made ready."""
        self.prepared.append(tuple(addresses))

    def take(self, index: int, addresses: Iterable[str], *, label: str | None) -> Taken:  # noqa: ARG002
        """Add those that are not refused."""
        wanted = tuple(addresses)
        added = frozenset(each for each in wanted if each not in self.refused)
        self.present |= {(index, each) for each in added}
        return Taken(added=added, failed={each: self.refused[each] for each in wanted if each not in added})

    def release(self, index: int, addresses: Iterable[str]) -> None:
        """Remove them."""
        self.present -= {(index, each) for each in addresses}

    def unrecorded(self, _: str, addresses: Iterable[str]) -> list[str]:
        """Return those that are not ours: there is no record."""
        return list(addresses)


class SimulatedRouting:
    """The routes and rules in the kernel; `refused` have their reasons, `foreign` are somebody else's.

    `error` is raised by everything, while it is set.
    """

    def __init__(self) -> None:
        self.present: list[Routed] = []
        self.removed: list[Routed] = []
        self.held: set[Routed] = set()
        self.foreign: set[Routed] = set()
        self.refused: dict[Routed, str] = {}
        self.error: OSError | None = None

    def add(self, wanted: Iterable[Routed]) -> AddedRoutes:
        """Add those that are missing, are not refused and have their place free; tell who was gone."""
        self._fail()
        wanted = tuple(wanted)
        added = [each for each in wanted if each not in (*self.foreign, *self.refused, *self.present)]
        taken = set(map(place, added))
        self.present = [each for each in self.present if place(each) not in taken] + added
        restored = tuple(each for each in added if each in self.held)
        self.held |= set(added)
        return AddedRoutes(
            restored=restored,
            foreign=tuple(each for each in wanted if each in self.foreign),
            failed={each: self.refused[each] for each in wanted if each in self.refused},
        )

    def remove(self, unwanted: Iterable[Routed]) -> None:
        """Remove them."""
        self._fail()
        places = set(map(place, unwanted))
        self.removed += [each for each in self.present if place(each) in places]
        self.present = [each for each in self.present if place(each) not in places]
        self.held = {each for each in self.held if place(each) not in places}

    def keep_only(self, wanted: Iterable[Routed]) -> None:
        """Remove the others."""
        places = set(map(place, wanted))
        self.remove([each for each in self.held if place(each) not in places])

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


class SimulatedLinks:
    """The interfaces by name, and the addresses that somebody else has put on them."""

    def __init__(self) -> None:
        self.links: dict[str, Link] = {}
        self.foreign: dict[str, tuple[tuple[str, str], ...]] = {}

    def state(self, name: str) -> Link | None:
        """Return one."""
        return self.links.get(name)

    def places(self, address: str) -> tuple[tuple[str, str], ...]:
        """Return where somebody else has an address."""
        return self.foreign.get(address, ())

    def has_mac(self, mac: bytes) -> bool:
        """Say whether it is ours."""
        return any(each.mac == mac for each in self.links.values())


class NoNeighbours:
    """The kernel's tables of neighbours, which are empty."""

    def addresses_of(self, *_: object) -> tuple[str, ...]:
        """Return none."""
        return ()


class SimulatedClaims:
    """A socket for claims that hears nothing and keeps what was sent."""

    def __init__(self, interface: str, addresses: Sequence[str]) -> None:
        self.interface, self.addresses = interface, tuple(addresses)
        self.sent: list[bytes] = []
        self.arriving: list[bytes] = []
        self.closed = False

    def fileno(self) -> int:
        """Return a number that is nobody's."""
        return 2_000_000

    def send(self, frame: bytes) -> None:
        """Keep it."""
        self.sent.append(frame)

    def receive(self) -> list[bytes]:
        """Return what has arrived, once."""
        arrived, self.arriving = self.arriving, []
        return arrived

    def close(self) -> None:
        """Note it."""
        self.closed = True


class SimulatedLoop:
    """A loop whose time a test moves on; descriptors are read when the test says so."""

    def __init__(self) -> None:
        self.readers: dict[int, Callable[[], None]] = {}
        self.timed: list[object] = []

    def read(self, descriptor: int, ready: Callable[[], None]) -> None:
        """Note who reads."""
        self.readers[descriptor] = ready

    def forget(self, descriptor: int) -> None:
        """Forget it."""
        self.readers.pop(descriptor, None)

    def add(self, timed: object) -> None:
        """Wake one at its deadlines."""
        self.timed.append(timed)

    def add_one_of_many(self, timed: object, **_: object) -> Callable[[], None]:
        """Do the same."""
        self.timed.append(timed)
        return lambda: None

    def remove(self, timed: object) -> None:
        """Wake it no more."""
        self.timed = [each for each in self.timed if each is not timed]

    def run(self, until: float) -> None:
        """Wake everybody at their deadlines, in order, until then."""
        for _ in range(10_000):
            due = [(each.deadline, each) for each in self.timed if each.deadline is not None]
            at, earliest = min(due, key=lambda pair: pair[0], default=(until, None))
            if earliest is None or at > until:
                return
            earliest.tick(at)
        raise AssertionError("somebody is due for ever")


class SimulatedLog:
    """Keeps the events with their fields."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []

    def _log(self, event: str, **fields: object) -> None:
        self.events.append((event, fields))

    info = warning = error = _log

    def fields(self, event: str) -> list[dict[str, object]]:
        """Return the fields of each event of this name."""
        return [fields for name, fields in self.events if name == event]


class SimulatedObserver:
    """Keeps what a group has told, and of a state whether the addresses were held by then."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def entered(self, instance: VrrpInstance, entered: Entered) -> None:
        """Keep a state."""
        self.told.append((instance.name, entered.state, instance.holder.held))

    def split_brain(self, instance: VrrpInstance, split: SplitBrain) -> None:
        """Keep another active."""
        self.told.append((instance.name, "split-brain", split.peer))

    def handed_over(self, instance: VrrpInstance, successor: str | None) -> None:
        """Keep the end of a hand-over."""
        self.told.append((instance.name, "handed-over", successor))

    def cut_short(self, instance: VrrpInstance, why: str) -> None:
        """Keep the early end of one."""
        self.told.append((instance.name, "cut-short", why))

    def unexpected(self, instance: VrrpInstance, unexpected: UnexpectedEvent) -> None:
        """Keep an event that cannot happen."""
        self.told.append((instance.name, "unexpected", unexpected.event))

    def late(self, names: Iterable[str], seconds: float, _: float) -> None:
        """Keep a late wake-up."""
        self.told.append((*names, "late", round(seconds, 3)))

    def crashed(self, names: Iterable[str], error: Exception) -> None:
        """Keep a bug."""
        self.told.append((*names, "crashed", str(error)))

    def states(self, name: str) -> list[RouterState]:
        """Return the states that an instance has entered."""
        return [each[1] for each in self.told if each[0] == name and isinstance(each[1], RouterState)]


@dataclass
class Machine:
    """A machine with the interface eth0 of index 2, up, whose address is 192.0.2.1."""

    loop: SimulatedLoop = field(default_factory=SimulatedLoop)
    links: SimulatedLinks = field(default_factory=SimulatedLinks)
    routing: SimulatedRouting = field(default_factory=SimulatedRouting)
    addresses: SimulatedAddresses = field(default_factory=SimulatedAddresses)
    log: SimulatedLog = field(default_factory=SimulatedLog)
    observer: SimulatedObserver = field(default_factory=SimulatedObserver)
    claims: list[SimulatedClaims] = field(default_factory=list)
    refuse_ports: OSError | None = None

    def __post_init__(self) -> None:
        self.set_link()
        asking = NeighbourQueries(self.loop, Closer())
        self.environment = RouterEnvironment(
            loop=self.loop,
            links=self.links,
            addresses=self.addresses,
            routing=self.routing,
            requests=None,
            neighbours=NoNeighbours(),
            closer=Closer(),
            asking=asking,
            returns=PeerReturns(asking),
            log=self.log,
            missing=(),
            open_port=self._open_port,
            open_claims=self._open_claims,
        )

    def set_link(self, name: str = "eth0", **changes: object) -> Link:
        """Have an interface in this state, and return it."""
        values = {
            "name": name,
            "index": 2,
            "mac": OUR_MAC,
            "up": True,
            "addresses": ("192.0.2.1/24",),
            "own": ("192.0.2.1/24",),
        }
        self.links.links[name] = Link(**{**values, **changes})
        return self.links.links[name]

    def instance(self, router: VirtualRouter, now: float) -> VrrpInstance:
        """Return one that has been told of its interface."""
        made = VrrpInstance(router, self.environment)
        made.update_link(self.links.state(router.interface), now)
        return made

    def group(self, *routers: VirtualRouter, left: list[RouterGroup] | None = None) -> RouterGroup:
        """Return a group that has started at 0.0, in the loop; `left` gets it when all have stopped."""
        members = [self.instance(each, 0.0) for each in routers]
        on_left = (left if left is not None else list[RouterGroup]()).append
        group = RouterGroup(members, self.observer, now=0.0, on_left=on_left)
        self.loop.add(group)
        group.start(0.0)
        return group

    def _open_port(self, router: VirtualRouter, **given: object) -> SimulatedPort:
        if self.refuse_ports is not None:
            raise self.refuse_ports
        return SimulatedPort(router, **given)

    def _open_claims(self, interface: str, addresses: Sequence[str]) -> SimulatedClaims:
        self.claims.append(SimulatedClaims(interface, addresses))
        return self.claims[-1]


def port_of(instance: VrrpInstance) -> SimulatedPort:
    """Return the sockets of an instance, which are open."""
    port = instance.port.open_port
    assert isinstance(port, SimulatedPort)
    return port


def advert(priority: int, peer: str = "192.0.2.2", *, interval: float = 1.0) -> ReceivedAdvert:
    """Return what a peer advertises."""
    return ReceivedAdvert(priority=priority, interval=interval, sender=packed(peer), peer=peer)
