"""The keys of `shared_ips`, as in `model.config.configuration`: the descriptions are the documentation."""

from pydantic import Field

from appliance.model.config.section import Section
from appliance.model.config.values.field_types import (
    Communities,
    Duration,
    Name,
    Names,
    SharedAddresses,
    WhenUnhealthy,
    written,
)
from appliance.model.config.values.units import duration
from appliance.model.config.virtual_ips import TrackSection
from appliance.model.snapshot.shared_ip import Unhealthy


class SharedIpSection(Section):
    """Addresses that all nodes serve at a time; routers spread connections over the nodes (ECMP)."""

    addresses: SharedAddresses = Field(min_length=1, examples=[["198.51.100.10/32", "2001:db8:10::10/128"]])
    """Addresses of one host each, `/32` or `/128`, of both families if wanted, outside all local networks."""
    track: dict[Name, TrackSection] = Field(default_factory=dict)
    """Tracks by name, as in `virtual_ips`, without `weight`: the addresses are served while all are up."""
    unhealthy: WhenUnhealthy = Field(default=Unhealthy.LAST_RESORT)
    """While a track is down: `last-resort` announces the addresses as drained, so that routers use this node
    only if no other serves; `withdraw` announces them no more."""
    communities: Communities = Field(default=(), examples=[["64512:100"]])
    """Communities of the announced routes (RFC 1997)."""
    drain: Duration = written("5s", duration)
    """Time that the addresses are announced as drained before they are withdrawn."""
    neighbors: Names = Field(default=(), examples=[["tor-a"]])
    """Neighbours of `bgp` that get the routes; with [], all."""
