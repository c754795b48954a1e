"""The section `linger`, as in `model.config.configuration`: virtual IPs that move with their connections."""

from pydantic import Field

from appliance.model.config.section import Section
from appliance.model.config.values.field_types import Duration, Secret, written
from appliance.model.config.values.units import duration


class LingerSection(Section):
    """Planned moves of virtual IPs end no connection: the node that had it goes on with those that it has."""

    key: Secret = Field(examples=["file:/etc/appliance/linger.key"])
    """Key that all nodes share, as in `auth.hmac`: it signs what they report of connections."""
    accept: list[Secret] = Field(default_factory=list, max_length=4)
    """Other keys that are accepted besides `key`, so that it can be rotated."""
    longest: Duration = written("24h", duration)
    """Longest time for which a node goes on with connections of a virtual IP that it has left."""
    port: int = Field(default=29446, ge=1, le=65535)
    """UDP port at which nodes tell each other, the same on all; only from the same segment."""
