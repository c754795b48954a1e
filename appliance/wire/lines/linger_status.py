"""The answer of the program `linger` to `status`, read by `appliance vip status` and `leave`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from appliance.wire.lines.status_answer import StatusAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptStatus:
    """One address that this node serves (`active`), or left at `left_at` with `connections` open.

    `followers` are the nodes that would redirect its packets here, if they served it.
    """

    address: str
    router: str = ""
    active: bool = False
    left_at: float | None = None
    connections: int = 0
    followers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperStatus:
    """The same from another node, about one of our addresses."""

    node: str
    address: str
    router: str = ""
    active: bool = False
    left_at: float | None = None
    connections: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedAddress:
    """An address that all nodes serve.

    `ready` is whether packets of other nodes' connections are forwarded to them, and all peers were heard, or
    had the time to be; `nodes` are the other living nodes that have the address.
    """

    address: str
    ready: bool = False
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedServer:
    """A server, `pool/server`, that is `here` up or down, and at another node the opposite, `since` then."""

    server: str
    here: str = ""
    since: float = 0.0

    @property
    def there(self) -> str:
        """How the other node finds it."""
        return "down" if self.here == "up" else "up"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherNode:
    """Another node, by its own reports, last at `heard_at`; it is `silent` if that is long ago.

    `addresses` are all from which it reports, `address` is the one for longest. `configuration` is the digest
    of what all nodes have in common of it, "" if unknown; `differs_since` is None while it is this node's, or
    differs for a moment only. `condition` is unknown, well, attention or ill. `page` is the address of its
    page, "" if it has none. `judged` are the servers that it finds in another state than this node.
    """

    name: str
    address: str = ""
    addresses: tuple[str, ...] = ()
    release: str = ""
    configuration: str = ""
    condition: str = "unknown"
    page: str = ""
    heard_at: float = 0.0
    silent: bool = False
    differs_since: float | None = None
    judged: tuple[JudgedServer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LingerStatus(StatusAnswer):
    """The whole answer. `trouble` is why something is not as intended, empty if all is.

    `drops` counts rejected reports by reason, `strays` the packets of shared addresses that belong to no
    connection of this node, by what became of them. `nodes` are the other nodes of the cluster.
    """

    trouble: str = ""
    addresses: tuple[KeptStatus, ...] = ()
    others: tuple[KeeperStatus, ...] = ()
    shared: tuple[SharedAddress, ...] = ()
    nodes: tuple[OtherNode, ...] = ()
    drops: Mapping[str, int] = field(default_factory=dict)
    strays: Mapping[str, int] = field(default_factory=dict)

    def objection(self, routers: Collection[str]) -> str:
        """Return why moving these virtual routers would end their connections, "" if it would not."""
        moving = [each for each in self.addresses if each.active and each.router in routers]
        if not moving:
            return ""
        if self.trouble:
            return self.trouble
        alone = [each.address for each in moving if not each.followers]
        return f"no other known node would forward packets of {', '.join(alone)} here" if alone else ""

    @property
    def connections(self) -> int:
        """Return the number of open connections here to addresses that this node has left."""
        return sum(each.connections for each in self.addresses if not each.active)
