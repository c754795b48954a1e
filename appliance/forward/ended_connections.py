"""Ends connections that the kernel forwards: conntrack forgets them, and both ends are reset."""

import contextlib
from collections.abc import Iterable
from typing import Final

import gevent

from appliance.core.forwarding.numbers import MARK
from appliance.net.netlink.conntrack import Conntrack, TrackedConnection
from appliance.net.packets.prods import Prods

_WHOLE: Final = 0xFFFFFFFF
_AT_ONCE: Final = 256  # connections between which others get their turn


def end_connections(numbers: Iterable[int]) -> int:
    """End the connections of servers with these numbers; return how many were open. Raises OSError."""
    ended: list[TrackedConnection] = []
    with contextlib.closing(Conntrack()) as conntrack:
        for number in numbers:
            found = conntrack.connections(MARK | number, _WHOLE)
            ended += [each for each in found if each.open]
            conntrack.delete(MARK | number, _WHOLE)
    if not ended:
        return 0
    with Prods(mark=MARK) as prods:
        for count, each in enumerate(ended, 1):
            client, server = each.client, each.server
            with contextlib.suppress(OSError):  # one end cannot be reached: the other one matters as much
                prods.prod((client.destination, client.destination_port), (client.source, client.source_port))
            with contextlib.suppress(OSError):
                prods.prod((server.destination, server.destination_port), (server.source, server.source_port))
            if not count % _AT_ONCE:
                gevent.sleep(0)
    return len(ended)
