"""Whether the kernel of a neighbour still answers, though its program is silent.

The kernel asks a neighbour by ARP or neighbour discovery when its entry is set to NUD_PROBE, and keeps when
the neighbour last answered (struct nda_cacheinfo of linux/neighbour.h).
"""

import contextlib
import socket
import struct
from ipaddress import ip_address
from typing import Final

from appliance.net.netlink.neighbours import DESTINATION, GET, NEIGHBOUR, NEW, TIMES
from appliance.net.netlink.netlink import ACKNOWLEDGE, REPLACE, Requests, request
from appliance.net.netlink.rtnetlink import attribute, by_kind

_FIRST: Final = struct.Struct("=I")  # ndm_confirmed: ticks since the last answer
_TICKS: Final = 100  # USER_HZ
_PROBE: Final = 0x10  # NUD_PROBE
_ASKED: Final = 0x02 | 0x04 | 0x08 | 0x10  # NUD_REACHABLE, _STALE, _DELAY, _PROBE: not fixed by an operator
_FAMILIES: Final = {4: socket.AF_INET, 6: socket.AF_INET6}


def age(requests: Requests, address: str, *, interface: int) -> float | None:
    """Return how many seconds ago the neighbour last answered, None if unknown, and ask it again."""
    found = ip_address(address)
    family, wanted = _FAMILIES[found.version], attribute(DESTINATION, found.packed)
    with contextlib.suppress(OSError):  # it is no neighbour
        for message in requests.dump(_request(GET, ACKNOWLEDGE, family, interface, 0, wanted)):
            body = message.body
            state = NEIGHBOUR.unpack_from(body)[2]
            times = by_kind(body[NEIGHBOUR.size :]).get(TIMES)
            if not state & _ASKED or times is None:
                return None
            asked = _request(NEW, ACKNOWLEDGE | REPLACE, family, interface, _PROBE, wanted)
            requests.ask([asked])
            return float(_FIRST.unpack_from(times)[0] / _TICKS)
    return None


def _request(kind: int, flags: int, family: int, interface: int, state: int, wanted: bytes) -> bytes:
    body = NEIGHBOUR.pack(family, interface, state, 0, 0) + wanted
    return request(kind, flags, body)
