"""The section `linger`, as in `model.config.configuration`: virtual IPs that move with their connections."""

from pydantic import Field

from appliance.model.config.section import Section
from appliance.model.config.values.field_types import Duration, FilePath, RouterAddresses, Secret, written
from appliance.model.config.values.units import duration
from appliance.model.snapshot.linger import LEAST_MTU


class VxlanSection(Section):
    """A VXLAN (RFC 7348) between nodes of different segments, the same on all; `{}` is enough."""

    vni: int = Field(default=1, ge=1, le=(1 << 24) - 1)
    """Its number (VXLAN network identifier)."""
    port: int = Field(default=29447, ge=1, le=65535)
    """UDP port of its packets, which no other VXLAN of the machine has; accepted only from `peers`."""
    mtu: int | None = Field(default=None, ge=LEAST_MTU, le=65535, examples=[1500])
    """Largest packet on the way between nodes, if that is smaller than what the interface takes."""


class MovedSessionsSection(Section):
    """Sessions follow their virtual IP to the node that serves it, so that the former node may go."""

    certificate: FilePath = Field(examples=["/etc/appliance/nodes.pem"])
    """File with the certificate of this node, or of all nodes, and its private key, as PEM."""
    authorities: FilePath | None = Field(default=None, examples=["/etc/appliance/nodes-ca.pem"])
    """File of CA certificates whose holders may give and take sessions: a CA for the nodes alone. By default
    `certificate`, the same file on all nodes."""
    port: int = Field(default=29447, ge=1, le=65535)
    """TCP port for sessions of other nodes, the same on all."""


class LingerSection(Section):
    """Planned moves of virtual IPs close no connection: the node that held one keeps its connections.

    Nor does a change of the nodes that serve shared addresses.
    """

    key: Secret = Field(examples=["file:/etc/appliance/linger.key"])
    """Key that all nodes share, as in `auth.hmac`: it signs their reports of connections."""
    accept: list[Secret] = Field(default_factory=list, max_length=4)
    """Other keys that are accepted besides `key`, to rotate it."""
    longest: Duration = written("24h", duration)
    """Maximum time for which a node serves connections of a virtual IP after the move."""
    peers: RouterAddresses = Field(default=(), examples=[["10.0.0.34", "10.0.0.99"]])
    """The other nodes that serve `shared_ips`; by default the addresses of the other `nodes`."""
    port: int = Field(default=29446, ge=1, le=65535)
    """UDP port for reports between nodes, the same on all; accepted only from the same segment."""
    sessions: MovedSessionsSection | None = None
    """Sessions of pools with `source: virtual-ip` move to the node that serves their virtual IP."""
    vxlan: VxlanSection | None = None
    """For nodes behind routers: what they exchange about `shared_ips` goes through a VXLAN."""
