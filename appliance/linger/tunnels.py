"""The VXLAN of each version of IP through which this node reaches others, as `linger.vxlan` wants it.

Within it nodes have addresses that all compute alike, and are neighbours. A device outlives this program, so
that a restart ends no connection.
"""

import contextlib
import socket
from collections.abc import Iterable, Iterator
from typing import Final

from appliance.core.linger.tunnel import Tunnel
from appliance.linger.address_sets import SharedSet
from appliance.model.snapshot.linger import HEADERS, LEAST_MTU, Linger, Vxlan, inside
from appliance.net.netlink import vxlan
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.route_lookup import own_address
from appliance.net.netlink.vxlan import VxlanWanted
from appliance.net.packets.interface_mtu import mtus

_LOOKED: Final = 1.0  # seconds between two looks
_COMPLETED: Final = 5  # looks after which what others may have removed is added again


class Tunnels:
    """The devices by their version of IP. `trouble` is why there is none that should be, or empty."""

    def __init__(self) -> None:
        self.trouble = ""
        self._requests = Requests()
        self._made: dict[int, tuple[VxlanWanted, int]] = {}
        self._looked_at = float("-inf")
        self._looks = 0
        self._settings: object = None

    def follow(self, settings: Linger | None, sets: Iterable[SharedSet], now: float) -> bool:
        """Make the devices that are wanted, and remove others; called repeatedly.

        Return whether one was lost: nothing was received through it, which is no sign that a node is dead.
        """
        wanted = (settings.vxlan if settings else None), tuple(sets)
        lost = [at for at, (each, index) in self._made.items() if not _is_there(each.name, index)]
        for family in lost:
            del self._made[family]
        if wanted == self._settings and (wanted[0] is None or (not lost and now - self._looked_at < _LOOKED)):
            return False
        first, self._settings, self._looked_at = wanted != self._settings, wanted, now
        try:
            self._follow(*wanted, first=first)
        except OSError as error:
            self.trouble = str(error.strerror or error)
        else:
            self.trouble = ""
        return bool(lost)

    def rules(self, shared: SharedSet) -> Tunnel | None:
        """Return what the rules of a family need, None without a device."""
        if shared.family not in self._made:
            return None
        wanted, _ = self._made[shared.family]
        return Tunnel(port=wanted.port, nodes=tuple(wanted.peers.values()), mtu=wanted.mtu)

    def remove(self) -> None:
        """Remove the devices, including those of an earlier run; raises OSError."""
        self._made.clear()
        self._settings = None
        remove_all(self._requests)

    def close(self) -> None:
        """Close the socket; the devices stay."""
        self._requests.close()

    def _follow(self, given: Vxlan | None, sets: tuple[SharedSet, ...], *, first: bool) -> None:
        self._looks += 1
        named = {each.family for each in sets if given is not None and each.peers}
        self._made = {family: each for family, each in self._made.items() if family in named}
        if first:
            remove_all(self._requests, but={f"lb-strays{family}" for family in named})
        for each in sets:
            if given is not None and each.family in named:
                self._keep(self._wanted(given, each))

    def _keep(self, wanted: VxlanWanted) -> None:
        made, index = self._made.get(wanted.family, (None, 0))
        if made != wanted:
            self._made.pop(wanted.family, None)
            self._made[wanted.family] = wanted, vxlan.make(self._requests, wanted)
        elif self._looks % _COMPLETED == 0:
            vxlan.complete(self._requests, wanted, index)

    def _wanted(self, given: Vxlan, shared: SharedSet) -> VxlanWanted:
        outside = [shared.outside[each] for each in shared.peers]
        own = set[str]()
        for each in outside:
            with contextlib.suppress(OSError):  # there is no route to it now
                own.add(own_address(each))
        known = mtus(self._requests, (each for each in outside if each not in own)).values()
        if not known:
            raise OSError(0, "there is no route to any other node")
        mtu = given.mtu or min(known)
        if mtu < LEAST_MTU:
            why = f"packets between nodes have {mtu} bytes at most, and need {LEAST_MTU}: raise the MTU"
            raise OSError(0, why)
        return VxlanWanted(
            family=shared.family,
            vni=given.vni,
            port=given.port,
            mtu=mtu - HEADERS[shared.family],
            own={inside(each): each for each in sorted(own)},
            peers={inside(each): each for each in outside if each not in own},
        )


def remove_all(requests: Requests, *, but: Iterable[str] = ()) -> Iterator[str]:
    """Remove our devices, except for those of these names; return the removed ones. Raises OSError."""
    kept = set(but)
    gone = [each for each in vxlan.present(requests) if vxlan.is_ours(each) and each.name not in kept]
    for each in gone:
        vxlan.remove(requests, each)
    return (each.name for each in gone)


def _is_there(name: str, index: int) -> bool:
    with contextlib.suppress(OSError):
        return socket.if_nametoindex(name) == index
    return False
