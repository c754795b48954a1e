"""`virtual_server`: its content, before it becomes a frontend and a pool."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from appliance.model.config.values.addresses import Endpoint
from appliance.model.messages.problems import FilePosition
from appliance.model.messages.quoting import shown
from appliance.model.snapshot.pools import Balance
from appliance.translation.keepalived.ledger import Ledger
from appliance.translation.keepalived.meaning.directive_handling import (
    Table,
    Understood,
    apply,
    ignored,
    refused,
)
from appliance.translation.keepalived.meaning.values import DirectiveError, only, whole
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.syntax.located_text import Word
from appliance.translation.keepalived.virtual_servers.blocks import MAIL, Block, endpoint
from appliance.translation.keepalived.virtual_servers.check_times import MOST_NUMBER, times
from appliance.translation.keepalived.virtual_servers.real_server import RealServer, nat, real_server, weight

Groups = Mapping[str, Directive]
"""The groups of a file by name; they may follow the virtual servers that use them."""

GROUP: Final = "group"
_EACH: Final = "write a `virtual_server ADDRESS PORT` for each"
_MARKED: Final = f"marks of another firewall are not supported: {_EACH}"

_TURNS: Final = (
    "servers take turns: the kernel does not compare their connections (a proxy's `leastconn` does)"
)
_HASHED: Final = "a client's address chooses its server, with a hash other than IPVS's"
_ONE: Final = (
    "chooses by the address that clients connect to, of which there is one here: write `wrr`, or `sh` for "
    "the client's"
)
_ORDER: Final = "only backups wait for other servers here: `backup: true` on a server in the appliance's YAML"

USUAL: Final = "wlc"
"""keepalived's default scheduler."""

_LONGEST: Final = 86400 * 31  # seconds that IPVS remembers a client, at most
_METHODS: Final = ("NAT", "DR", "TUN")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")


def group_of(given: Directive, groups: Groups) -> Directive | None:
    """Return the group that a virtual server names, None if it names an address."""
    words = [each.text for each in given.values]
    return groups.get(words[1]) if len(words) > 1 and words[0] == GROUP else None


def listened(given: Directive, groups: Groups) -> tuple[Endpoint, ...]:
    """Return the addresses of a virtual server; raises DirectiveError."""
    kind = given.values[0].text if given.values else ""
    if kind == "fwmark":
        raise DirectiveError(_MARKED, given.place)
    if kind != GROUP:
        return (endpoint(given),)
    group = group_of(given, groups)
    if group is None:
        raise DirectiveError("names no virtual_server_group of this file", given.place)
    found = tuple(dict.fromkeys(_member(given, each) for each in group.within))
    if not found:
        raise DirectiveError("its virtual_server_group has no address", given.place)
    if len({":" in each.host for each in found}) > 1:
        raise DirectiveError(f"its group has addresses of both versions of IP: {_EACH}", given.place)
    _refuse_ports_of_servers(given, found)
    return found


def _member(given: Directive, member: Directive) -> Endpoint:
    """Return the address in one line of a group."""
    if member.keyword == "fwmark":
        raise DirectiveError(_MARKED, given.place)
    if "-" in member.keyword or len(member.words) > 2:
        reason = f"its group has more than an address and a port: {shown(member.keyword)}; {_EACH}"
        raise DirectiveError(reason, given.place)
    try:
        return endpoint(Directive(words=(given.words[0], *member.words)))
    except DirectiveError as fault:
        raise DirectiveError(fault.reason, given.place) from None


def _refuse_ports_of_servers(given: Directive, found: tuple[Endpoint, ...]) -> None:
    """Refuse servers without a port behind several listened ports: each connection would keep its own."""
    servers = [each for each in given.within if each.keyword in {"real_server", "sorry_server"}]
    if len({each.port for each in found}) > 1 and any(len(each.values) < 2 for each in servers):
        raise DirectiveError(
            f"its servers use the ports of its group, which has several: {_EACH}", given.place
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """One of our algorithms; with `alike` all servers have the same weight. `reason` names the difference."""

    balance: Balance = Balance.ROUNDROBIN
    alike: bool = False
    reason: str | None = None


SCHEDULERS: Final[Mapping[str, Scheduler]] = {
    "rr": Scheduler(alike=True),
    "wrr": Scheduler(),
    "lc": Scheduler(alike=True, reason=_TURNS),
    "wlc": Scheduler(reason=_TURNS),
    "sed": Scheduler(reason=_TURNS),
    "nq": Scheduler(reason=_TURNS),
    "twos": Scheduler(
        balance=Balance.RANDOM, reason="one is chosen at random: the kernel does not compare two"
    ),
    "sh": Scheduler(balance=Balance.SOURCE, reason=_HASHED),
    "mh": Scheduler(balance=Balance.SOURCE, reason=_HASHED),
}
UNKNOWN_HERE: Final[Mapping[str, str]] = {
    "dh": _ONE,
    "lblc": _ONE,
    "lblcr": _ONE,
    "fo": _ORDER,
    "ovf": _ORDER,
}
"""Schedulers without a similar algorithm here, and why."""


@dataclass(slots=True, kw_only=True)
class VirtualServer(Block):
    """A virtual server while it is being read; one with a group has several addresses."""

    addresses: tuple[Endpoint, ...]
    protocol: Word | None = None
    method: Word | None = None
    scheduler: Word | None = None
    by_port: FilePosition | None = None
    persistence: FilePosition | None = None
    weight: tuple[int, FilePosition] | None = None
    quorum: tuple[int, FilePosition] | None = None
    inhibits: FilePosition | None = None
    sorry: tuple[Endpoint, FilePosition] | None = None
    servers: list[RealServer] = field(default_factory=list)

    @property
    def address(self) -> Endpoint:
        """The first of its addresses."""
        return self.addresses[0]


def virtual_server(given: Directive, ledger: Ledger, groups: Groups) -> VirtualServer:
    """Return a virtual server for TCP with all of its servers; raises DirectiveError."""
    found = VirtualServer(head=given, ledger=ledger, addresses=listened(given, groups))
    for each in given.within:
        apply(VIRTUAL_SERVER, found, each, ledger)
    if found.protocol is None:
        raise DirectiveError("has no `protocol`, and keepalived uses UDP: write `protocol TCP`", given.place)
    return found


def _protocol(found: VirtualServer, given: Directive) -> None:
    word = only(given)
    name = word.text.upper()
    if name not in _PROTOCOLS:
        found.ledger.change(
            word.place,
            f"{shown(word.text)} is unknown to keepalived, which ignores it, and so does the appliance",
        )
        return
    if name != "TCP":
        raise DirectiveError(f"only TCP is balanced here: leave {name} to IPVS", word.place)
    found.protocol = word


def _method(found: VirtualServer, given: Directive) -> None:
    nat(found, given)
    word = only(given)
    if word.text not in _METHODS:
        found.ledger.change(
            word.place,
            f"{shown(word.text)} is unknown to keepalived, which uses NAT, and so does the appliance",
        )
    found.method = word


def _scheduler(found: VirtualServer, given: Directive) -> None:
    word = only(given)
    if word.text in UNKNOWN_HERE:
        raise DirectiveError(UNKNOWN_HERE[word.text], word.place)
    if word.text in SCHEDULERS:
        found.scheduler = word
    else:
        reason = f"{shown(word.text)} is unknown to keepalived, which ignores it, and so does the appliance"
        found.ledger.change(word.place, reason)


def _by_port(found: VirtualServer, given: Directive) -> None:
    found.by_port = given.place


def _persistence(found: VirtualServer, given: Directive) -> None:
    if given.values:
        whole(only(given), least=1, most=_LONGEST)
    found.persistence = given.place


def _granularity(found: VirtualServer, given: Directive) -> None:
    word = only(given)
    found.persistence = found.persistence or given.place
    if word.text in ("255.255.255.255", "128"):
        found.ledger.ignore(word.place, "clients are treated individually, as here")
    else:
        reason = "clients are treated individually: clients of one network may have different servers"
        found.ledger.change(word.place, reason)


def _weight(found: VirtualServer, given: Directive) -> None:
    found.weight = weight(given, least=1)


def _quorum(found: VirtualServer, given: Directive) -> None:
    word = only(given)
    found.quorum = (whole(word, least=1, most=MOST_NUMBER), given.place)


def _inhibit(found: VirtualServer, given: Directive) -> None:
    found.inhibits = given.place


def _sorry(found: VirtualServer, given: Directive) -> None:
    found.sorry = (endpoint(given, port=found.address.port), given.place)


def _real_server(found: VirtualServer, given: Directive) -> None:
    found.servers.append(real_server(given, found, port=found.address.port))


_OPS: Final = ignored("is for UDP only")
_FALLBACK: Final = ignored("the appliance always chooses only servers that are up")
_COMMANDS: Final = refused(
    "no command is run for a pool: `track: { serving: { pool: NAME } }` of a virtual IP follows its servers"
)

VIRTUAL_SERVER: Final[Table[VirtualServer]] = {
    **times(VirtualServer),
    "protocol": Understood(act=_protocol),
    "lb_kind": Understood(act=_method),
    "lvs_method": Understood(act=_method),
    "lb_algo": Understood(act=_scheduler),
    "lvs_sched": Understood(act=_scheduler),
    "sh-port": Understood(act=_by_port),
    "mh-port": Understood(act=_by_port),
    "flag-2": Understood(act=_by_port),
    "sh-fallback": _FALLBACK,
    "mh-fallback": _FALLBACK,
    "flag-1": _FALLBACK,
    "flag-3": ignored("has no effect on the supported algorithms"),
    "hashed": ignored("has no effect in keepalived either"),
    "ops": _OPS,
    "persistence_timeout": Understood(act=_persistence, slip="ignores it"),
    "persistence_granularity": Understood(act=_granularity),
    "persistence_engine": refused("is for SIP over UDP: leave it out"),
    "weight": Understood(act=_weight, slip="ignores it"),
    "quorum": Understood(act=_quorum, slip="uses 1"),
    "hysteresis": ignored("belongs to `quorum`"),
    "quorum_up": _COMMANDS,
    "quorum_down": _COMMANDS,
    "omega": ignored("no commands are run for servers, not even at the end"),
    "inhibit_on_failure": Understood(act=_inhibit),
    "sorry_server": Understood(act=_sorry),
    "sorry_server_inhibit": ignored("the backup is used when no server is up"),
    "sorry_server_lvs_method": Understood(act=nat),
    "real_server": Understood(act=_real_server, block=True),
    "ha_suspend": ignored("both nodes check the servers, so the one that takes over has their states"),
    "ip_family": ignored("the address determines it"),
    "smtp_alert": MAIL,
    "snmp_name": ignored("there is no SNMP: the metrics show each pool"),
}
