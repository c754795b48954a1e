"""The sockets of one virtual router, on one interface as it is now: made together, closed together."""

from collections.abc import Callable
from typing import Final

from appliance.core.reception import bare
from appliance.model.virtual_router import VirtualRouter
from appliance.net.frames import FrameSocket
from appliance.net.vrrp_sockets import VrrpSocket
from appliance.programs.advert_intake import AdvertIntake, Dropped
from appliance.programs.advert_sender import AdvertSender
from appliance.wire import arp, neighbour
from appliance.wire.vrrp import MULTICAST_4, MULTICAST_6

_GROUPS: Final = {4: MULTICAST_4, 6: MULTICAST_6}


class RouterPort:
    """What a virtual router sends and receives by, from the address `source`; raises OSError."""

    def __init__(
        self,
        router: VirtualRouter,
        *,
        interface: str,
        mac: bytes,
        source: str,
        on_drop: Callable[[Dropped], None],
    ) -> None:
        self.source = source
        self._socket = VrrpSocket(
            interface,
            family=router.family,
            source=source,
            group=None if router.peers else _GROUPS[router.family],
            router_id=router.router_id,
        )
        try:
            self._frames = FrameSocket(interface)
        except OSError:
            self._socket.close()
            raise
        self.sender = AdvertSender(router, self._socket, source=source)
        self.intake = AdvertIntake(router, self._socket, source=source, on_drop=on_drop)
        self._announcements = {
            address: _announcements(router, address, mac) for address in bare(router.addresses)
        }
        self._probes = tuple(_probe(router, address, mac) for address in bare(router.addresses))

    def fileno(self) -> int:
        """Return the descriptor that can be read when something is to be heard."""
        return self._socket.fileno()

    def announce(self, repeat: int) -> int:
        """Announce every address `repeat` times, each once before any again; return how many frames went."""
        frames = [frame for each in self._announcements.values() for frame in each]
        for _ in range(repeat):
            for frame in frames:
                self._frames.send(frame)
        return repeat * len(frames)

    def probe(self) -> None:
        """Ask who has our addresses, and claim nothing."""
        for frame in self._probes:
            self._frames.send(frame)

    def close(self) -> None:
        """Close them; harmless when repeated."""
        self._socket.close()
        self._frames.close()


def _announcements(router: VirtualRouter, address: str, mac: bytes) -> tuple[bytes, ...]:
    if router.family == 6:
        return (neighbour.unsolicited(mac, address),)
    request = arp.gratuitous(mac, address, form=arp.Form.REQUEST)
    if not router.announce.reply:
        return (request,)
    return (request, arp.gratuitous(mac, address, form=arp.Form.REPLY))


def _probe(router: VirtualRouter, address: str, mac: bytes) -> bytes:
    return arp.probe(mac, address) if router.family == 4 else neighbour.probe(mac, address)
