"""What the kernel does for one frontend in one version of IP, as values, still without nftables."""

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_network

from appliance.model.snapshot.frontends import Bind, Frontend
from appliance.model.snapshot.pools import Pool
from appliance.wire.nftables.nftables_commands import Family


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedServer:
    """A server that may have connections: new ones if slots lead to it, otherwise only open ones.

    `networks` are those that it shares with this node: clients from there are always masqueraded.
    """

    number: int
    name: str
    host: str
    port: int
    networks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """The interface, and its peers if there are any, by which other nodes report their connections."""

    interface: str
    peers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedFrontend:
    """A frontend in one version of IP.

    `slots` are the numbers of the servers, empty if no server is up. `waits`: their first checks are still
    under way, so clients should try again. `leaving`: a listening socket replaces it. `virtual` are
    the addresses that servers see as their clients', because they move with the connections (`sync`), and
    `exchange` is how nodes report these to each other.
    """

    number: int
    name: str
    config: Frontend
    pool: Pool
    servers: tuple[ForwardedServer, ...]
    slots: tuple[int, ...]
    waits: bool
    leaving: bool = False
    virtual: tuple[str, ...] = ()
    exchange: Exchange | None = None


def family_of(host: str) -> Family:
    """Return the version of IP of a literal address or network."""
    return Family.IPV6 if ":" in host else Family.IPV4


def binds_in(frontend: Frontend, family: Family) -> tuple[Bind, ...]:
    """Return the binds of a frontend in a version of IP; `::` is every address of both."""
    return tuple(each for each in frontend.binds if each.host == "::" or family_of(each.host) is family)


@lru_cache(maxsize=64)  # ten thousand networks take 60 ms, each time
def networks_in(networks: tuple[str, ...], family: Family) -> tuple[str, ...]:
    """Return the networks of this version, as nftables writes them."""
    return tuple(str(ip_network(each, strict=False)) for each in networks if family_of(each) is family)
