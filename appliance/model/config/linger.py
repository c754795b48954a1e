"""The section `linger`, as in `model.config.configuration`: virtual IPs that move with their connections."""

from pydantic import Field

from appliance.model.config.section import Section
from appliance.model.config.values.field_types import Duration, RouterAddresses, Secret, written
from appliance.model.config.values.units import duration


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
