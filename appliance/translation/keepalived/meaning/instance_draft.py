"""One `vrrp_instance` during translation: the keys written so far, and what later ones depend on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from appliance.model.config.values.addresses import Address
from appliance.model.document.tree import Plain
from appliance.model.messages.problems import FilePosition
from appliance.translation.keepalived.ledger import Ledger
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.syntax.located_text import Word
from appliance.translation.tree_builder import TreeBuilder

OTHER_GROUP: Final = (
    "adverts go to the RFC's group, 224.0.0.18 or ff02::12: set the same on the other routers"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """An item that becomes an entry of `track`.

    `kind` is its key (`http`, `script` ...) and `target` the value. `haproxy`: it checks that haproxy runs;
    the entry then names a proxy of ours. `settings` are further keys, each with its place. `weight` 0 means
    fault while it is down. `reason` says what changed, None if nothing did.
    """

    name: str
    place: FilePosition
    kind: str
    target: Plain
    target_place: FilePosition
    settings: tuple[tuple[str, Plain, FilePosition], ...] = ()
    weight: int = 0
    weight_place: FilePosition | None = None
    haproxy: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """The sync group of an instance; `weights_count` is `sync_group_tracking_weight`."""

    group: str
    place: FilePosition
    weights_count: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """State shared by all instances: the ledger, what can be tracked, our proxies, global defaults."""

    ledger: Ledger
    watched: Mapping[tuple[str, str], Watched | None]
    programs: Sequence[str]
    script_user: Word | None
    default_interface: Word | None
    fifo: Word | None = None
    multicast_groups: Mapping[int, Word] = field(default_factory=dict)
    """Groups other than the RFCs', by IP version."""
    rule_priorities: dict[int, int] = field(default_factory=lambda: {4: 16384, 6: 16384})
    """Priority of the next rule without one, by IP version (RULE_START_PRIORITY of keepalived)."""


@dataclass(slots=True, kw_only=True)
class Instance:
    """One instance. `name` is its name here, `head` its directive, `keys` those of the virtual IP.

    Settings that several directives decide together are kept here until all are read.
    """

    surface: Surface
    name: str
    head: Directive
    keys: TreeBuilder
    membership: Membership | None = None
    interface: Word | None = None
    state: Word | None = None
    priority: int | None = None
    router_id: Word | None = None
    advert: tuple[Decimal, FilePosition] | None = None
    version: tuple[int, FilePosition] | None = None
    default_version: tuple[int, FilePosition] | None = None
    strict: FilePosition | None = None
    acceptance: Directive | None = None
    startup_delay: tuple[Decimal, FilePosition] | None = None
    auth_type: Word | None = None
    auth_pass: Word | None = None
    source: Word | None = None
    multicast_group: Word | None = None
    peers: list[Word] = field(default_factory=list)
    least_ttls: list[tuple[int, FilePosition]] = field(default_factory=list)
    family: int | None = None
    devices: list[Word] = field(default_factory=list)
    labels: list[Word] = field(default_factory=list)
    address_count: int = 0
    held: set[Address] = field(default_factory=set)
    bare_addresses: list[Word] = field(default_factory=list)
    nopreempt: Directive | None = None
    preempt_delay: tuple[Decimal, FilePosition] | None = None
    users: list[Word] = field(default_factory=list)
    tracks: dict[str, Watched] = field(default_factory=dict)
    tracked: set[tuple[str, str]] = field(default_factory=set)
    unprotected: list[str] = field(default_factory=list)
    """Keywords that protect the instance and cannot be translated."""

    @property
    def ledger(self) -> Ledger:
        """The ledger of all lines."""
        return self.surface.ledger

    @property
    def owner(self) -> bool:
        """Return whether it owns its addresses: priority 255, or `state MASTER` without a priority."""
        if self.priority is None:
            return self.state is not None and self.state.text == "MASTER"
        return self.priority == 255

    def put(self, *path: str, value: Plain, place: FilePosition) -> None:
        """Set a key of the virtual IP."""
        self.keys.put(path, value, place)

    def append(self, *path: str, value: Plain, place: FilePosition) -> None:
        """Add an item to a list of the virtual IP."""
        self.keys.append(path, value, place)

    def has(self, *path: str) -> bool:
        """Return whether a key is set."""
        return self.keys.has(path)
