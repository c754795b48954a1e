"""The elements of the sets `found` and `denied`: a connection, and the MAC of the node that forwarded it.

An element of joined types has each in whole words of 32 bits (NFT_REG32_SIZE of linux/netfilter/nf_tables.h).
"""

import struct
from typing import Final

from appliance.wire.linger_strays import Ends
from appliance.wire.literal import text

_KEYS: Final = {4: struct.Struct("!4sH2x4sH2x6s2x"), 6: struct.Struct("!16sH2x16sH2x6s2x")}


def decode(key: bytes, *, family: int) -> tuple[Ends, bytes] | None:
    """Return the connection and the MAC of an element, None if it is not of these sets."""
    layout = _KEYS[family]
    if len(key) != layout.size:
        return None
    client, client_port, address, port, mac = layout.unpack(key)
    return (text(client), client_port, text(address), port), mac
