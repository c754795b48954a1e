"""How many connections this node has at an address: of its sockets, and of those that the kernel forwards."""

from collections import Counter
from collections.abc import Iterable

from appliance.core.forwarding.numbers import MARK, MARK_MASK
from appliance.net.netlink.conntrack import Conntrack
from appliance.net.netlink.socket_connections import SocketConnections


class OpenConnections:
    """The kernel's lists. Functions raise OSError."""

    def __init__(self) -> None:
        self._sockets = SocketConnections()
        self._conntrack: Conntrack | None = None

    def close(self) -> None:
        """Close the sockets of netlink."""
        self._sockets.close()
        if self._conntrack is not None:
            self._conntrack.close()

    def count(self, addresses: Iterable[str], *, forwards: bool) -> dict[str, int]:
        """Return the number of each; `forwards` is whether frontends have `forward: kernel`."""
        forwarded = self._forwarded() if forwards else Counter[str]()
        return {each: len(self._sockets.at(each)) + forwarded[each] for each in addresses}

    def _forwarded(self) -> Counter[str]:
        if self._conntrack is None:
            self._conntrack = Conntrack()
        found = self._conntrack.connections(MARK, MARK_MASK)
        return Counter(each.client.destination for each in found if each.open)
