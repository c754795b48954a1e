"""How virtual IPs move with their connections: the settings of the program `linger`."""

from dataclasses import dataclass

from appliance.model.snapshot.virtual_router import HmacKey
from appliance.model.snapshot.vxlan import Vxlan


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedSessions:
    """Sessions follow their virtual IP, over TLS at `port`, with the certificate and key of one file.

    `authorities` is a file of CA certificates for the other nodes, None if that is `certificate`.
    """

    certificate: str
    authorities: str | None
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Linger:
    """Connections stay on their node for `longest` seconds after a virtual IP has moved.

    Nodes report to each other, by UDP at `port`, what they have. The first of `keys` signs, all are accepted.
    `peers` are the other nodes that serve shared addresses, of both families. With `vxlan` they need not be
    on one segment.
    """

    longest: float
    port: int
    keys: tuple[HmacKey, ...]
    # Optional, because the last-good copy of an older version lacks it.
    peers: tuple[str, ...] = ()
    sessions: MovedSessions | None = None
    vxlan: Vxlan | None = None
