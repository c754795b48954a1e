"""The sockets that a VRRP instance needs: `RouterSockets` implements them, and in tests a simulated port."""

from collections.abc import Callable, Iterator
from typing import Protocol

from appliance.core.vrrp.election import ReceivedAdvert
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.loop.closer import Closer
from appliance.net.packets.frame_queue import FrameQueue
from appliance.vrrp.addresses.address_interface import AddressInterface
from appliance.vrrp.sockets.advert_receiver import AdvertDeviation, DroppedAdvert


class Port(Protocol):
    """The open sockets of one instance: `source` is where they send from, `announcing` what waits to be sent.

    `basis` is the router reduced to the settings that the sockets depend on.
    """

    source: str
    basis: VirtualRouter
    announcing: FrameQueue

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when a packet has arrived."""
        ...

    def send(self, priority: int, /) -> None:
        """Send one advertisement; raises OSError."""
        ...

    def receive(self, now: float, /) -> Iterator[ReceivedAdvert]:
        """Yield the received valid advertisements; raises OSError."""
        ...

    def announce(self, repeat: int, now: float) -> int:
        """Announce all addresses `repeat` times; return how many frames were sent. Raises OSError."""
        ...

    def close(self) -> None:
        """Close all sockets."""
        ...


class OpenPort(Protocol):
    """Opens the sockets of one instance, as `RouterSockets` does; raises OSError."""

    def __call__(
        self,
        router: VirtualRouter,
        *,
        interface: AddressInterface,
        source: str,
        closer: Closer,
        on_drop: Callable[[DroppedAdvert, float], None],
        on_deviation: Callable[[AdvertDeviation, float], None],
    ) -> Port:
        """Open them."""
        ...
