"""How virtual IPs move with their connections: the settings of the program `linger`."""

from dataclasses import dataclass

from appliance.model.snapshot.virtual_router import HmacKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Linger:
    """Connections stay on their node for `longest` seconds after a virtual IP has moved.

    Nodes report to each other, by UDP at `port`, what they have. The first of `keys` signs, all are accepted.
    `peers` are the other nodes that serve shared addresses, of both families.
    """

    longest: float
    port: int
    keys: tuple[HmacKey, ...]
    # Optional, because the last-good copy of an older version lacks it.
    peers: tuple[str, ...] = ()
