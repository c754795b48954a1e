"""The keys of `bgp`, as in `model.config.configuration`: the descriptions are the documentation."""

from pydantic import Field

from appliance.model.config.section import Section
from appliance.model.config.values.bgp import bfd_interval, hold_time, restart_time_or_off
from appliance.model.config.values.field_types import (
    Asn,
    BfdInterval,
    BgpEngine,
    BgpPassword,
    BgpRouterId,
    HoldTime,
    Name,
    Names,
    NeighborAddress,
    RestartTimeOrOff,
    RoutingTable,
    written,
)
from appliance.model.snapshot.shared_ip import Engine


class TablesSection(Section):
    """The kernel's routing tables with what is announced; no packet is routed by them."""

    serve: RoutingTable = Field(default=198, examples=[198])
    """Addresses that this node serves; 198 is kube-vip's, too."""
    drain: RoutingTable = Field(default=199, examples=[199])
    """Addresses that it drains: announced with the community GRACEFUL_SHUTDOWN (RFC 8326)."""


class BfdSection(Section):
    """Bidirectional Forwarding Detection (RFC 5880), by which the neighbour detects a dead node."""

    interval: BfdInterval = written("100ms", bfd_interval)
    """Time between packets, 50ms to 10s."""
    multiplier: int = Field(default=3, ge=2, le=255)
    """Missing packets after which the other side counts as dead."""


class NeighborSection(Section):
    """One router that the addresses are announced to."""

    address: NeighborAddress = Field(examples=["10.0.0.1"])
    """Its address; a link-local one with its interface, `fe80::1%ens192`."""
    asn: Asn = Field(examples=[64600])
    """Its autonomous system; that of `bgp.asn` makes it an internal session."""
    port: int = Field(default=179, ge=1, le=65535)
    """TCP port on which it listens."""
    password: BgpPassword | None = Field(default=None, examples=["file:/etc/appliance/bgp.pass"])
    """Password of the session (RFC 2385), up to 80 characters, or `file:/path`."""
    hold: HoldTime = written("9s", hold_time)
    """Hold time in whole seconds, from 3s; a third of it is the time between keepalives."""
    bfd: BfdSection | None = None
    """BFD, by which a dead node is detected in less than a second; the router needs it, too."""
    multihop: int | None = Field(default=None, ge=2, le=255, examples=[2])
    """Most hops to a router that is not on the same segment."""
    ttl_security: bool = Field(default=False)
    """Accept only packets of at most `multihop` hops, by default one (RFC 5082), as the router."""
    nodes: Names = Field(default=(), examples=[["lb-0", "lb-1"]])
    """Nodes that have this neighbour, by host name or APPLIANCE_NODE; with [], all."""


class BgpSection(Section):
    """How routers learn `shared_ips`."""

    engine: BgpEngine = Field(default=Engine.BIRD)
    """bird: BIRD 2, which runs with the appliance. table: another daemon of this machine, such as FRR,
    announces what is in `tables`."""
    asn: Asn = Field(examples=[64512])
    """Autonomous system of all nodes."""
    router_id: BgpRouterId = Field(
        default=None, json_schema_extra={"default": "auto"}, examples=["10.0.0.90"]
    )
    """BGP identifier, unlike all others, or `auto`: this node's address."""
    tables: TablesSection = Field(default_factory=TablesSection)
    """The kernel's routing tables with what is announced; no packet is routed by them."""
    graceful_restart: RestartTimeOrOff = written("15s", restart_time_or_off)
    """Time that neighbours keep the routes while BIRD restarts (RFC 4724), 1s to 4095s, or `off`."""
    neighbors: dict[Name, NeighborSection] = Field(default_factory=dict)
    """Routers by name."""
