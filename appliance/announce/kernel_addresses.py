"""What the kernel has of shared addresses: each on `lo`, and its route in a table that routers learn from.

The address stays whatever is announced. A route leads to `lo`: one with a gateway would be announced with
that next hop. Everything is marked as ours and outlives this program, so a restart changes nothing.
"""

import socket
from collections.abc import Mapping

from appliance.core.announce.announce_or_withdraw import SharedState
from appliance.model.snapshot.shared_ip import Bgp
from appliance.model.snapshot.virtual_router import VirtualRoute
from appliance.net.netlink.loopback_addresses import SHARED, KeptAddresses
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.routing import Routing
from appliance.wire.bird.bird_config import PROTOCOL


class KernelAddresses:
    """Addresses with their prefix lengths, as in the configuration. Methods raise OSError."""

    def __init__(self) -> None:
        self._requests = Requests()
        self._routing = Routing(self._requests, protocol=PROTOCOL)
        self._kept = KeptAddresses(mark=SHARED)
        self._known: set[str] = set()  # addresses that are or were ours

    def close(self) -> None:
        """Close the sockets; everything stays in the kernel."""
        self._requests.close()
        self._kept.close()

    def adopted(self, bgp: Bgp) -> Mapping[str, SharedState]:
        """Return what an earlier run announced; an address in both tables is served."""
        found: dict[str, SharedState] = {}
        for table, state in ((bgp.drain, SharedState.DRAINED), (bgp.serve, SharedState.SERVING)):
            found |= {to: state for to, at in self._places() if at == table}
        return found

    def put(self, states: Mapping[str, SharedState], bgp: Bgp | None) -> tuple[str, ...]:
        """Have exactly these addresses, and their routes; return routes that another program had removed.

        A new route is there before the one in the other table goes: routers see a change, not a withdrawal.
        An address is there before its route, and goes after it. Routes to addresses that were never ours
        stay: kube-vip beside us marks its own with the same protocol.
        """
        wanted = {_host(each) for each in states}
        for index, name in socket.if_nameindex() if wanted else ():
            if name != "lo":
                self._kept.silence(index)
        present = self._kept.present(wanted)
        for each in sorted(wanted - present):
            self._kept.keep(each)
        self._known |= wanted | present
        restored = self._announce(states, bgp)
        for each in sorted(present - wanted):
            self._kept.remove(each)
        return restored

    def _announce(self, states: Mapping[str, SharedState], bgp: Bgp | None) -> tuple[str, ...]:
        tables = {SharedState.SERVING: bgp.serve, SharedState.DRAINED: bgp.drain} if bgp else {}
        routes = [_route(address, tables[state]) for address, state in states.items() if state in tables]
        added = self._routing.add(routes)
        for route, reason in added.failed.items():
            raise OSError(f"{route}: {reason}")
        kept = {route.place[:2] for route in routes}
        self._routing.remove(
            _route(to, table)
            for to, table in self._places()
            if (to, table) not in kept and _host(to) in self._known
        )
        return tuple(str(each) for each in added.restored)

    def _places(self) -> list[tuple[str, int]]:
        """Return network and table of the routes of our protocol."""
        return [key[:2] for key in self._routing.present() if isinstance(key, tuple)]


def _route(address: str, table: int) -> VirtualRoute:
    return VirtualRoute(to=address, interface="lo", table=table)


def _host(address: str) -> str:
    return address.partition("/")[0]
