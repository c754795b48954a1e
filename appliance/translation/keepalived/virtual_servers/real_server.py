"""`real_server`: an address with a weight and checkers."""

from dataclasses import dataclass, field
from typing import Final

from appliance.model.config.values.addresses import Endpoint
from appliance.model.messages.problems import FilePosition
from appliance.translation.keepalived.meaning.directive_handling import (
    Table,
    Understood,
    apply,
    changed,
    ignored,
    refused,
)
from appliance.translation.keepalived.meaning.values import DirectiveError, is_on, only, whole
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.virtual_servers.blocks import MAIL, Block, endpoint
from appliance.translation.keepalived.virtual_servers.check_times import MOST_NUMBER, times
from appliance.translation.keepalived.virtual_servers.checkers import CHECKERS, Checker, checker

_METHODS: Final = ("DR", "TUN")
_OTHER_CHECK: Final = (
    "is not supported: write TCP_CHECK, HTTP_GET, SSL_GET or SMTP_CHECK, or `check` with `steps` in the "
    "appliance's YAML"
)


@dataclass(slots=True, kw_only=True)
class RealServer(Block):
    """A server while it is being read; `weight` None means that of the virtual server."""

    address: Endpoint
    weight: tuple[int, FilePosition] | None = None
    inhibits: FilePosition | None = None
    checkers: list[Checker] = field(default_factory=list)


def real_server(given: Directive, around: Block, *, port: int) -> RealServer:
    """Return a server; without a port of its own it has that of the virtual server."""
    found = RealServer(head=given, ledger=around.ledger, address=endpoint(given, port=port))
    for each in given.within:
        apply(REAL_SERVER, found, each, found.ledger)
    return found


def nat(_: Block, given: Directive) -> None:
    """Take `lvs_method` or `lb_kind`; with DR and TUN, servers answer clients directly, past this node."""
    word = only(given)
    if word.text in _METHODS:
        reason = (
            f"with {word.text} servers answer clients directly, bypassing this node: write `{given.keyword} "
            "NAT`, with this node as the servers' return route, or the appliance's frontend and pool, for "
            "a proxy"
        )
        raise DirectiveError(reason, given.place)


def weight(given: Directive, *, least: int) -> tuple[int, FilePosition]:
    """Return a weight; IPVS allows greater ones than we do."""
    word = only(given)
    return whole(word, least=least, most=2**31 - 1), word.place


def _weight(found: RealServer, given: Directive) -> None:
    found.weight = weight(given, least=0)


def _inhibit(found: RealServer, given: Directive) -> None:
    found.inhibits = given.place if is_on(given) else None


def _most(found: RealServer, given: Directive) -> None:
    del found
    if whole(only(given), least=0, most=MOST_NUMBER):
        reason = "a limit for one server needs a proxy: `max_connections` of a server in the appliance's YAML"
        raise DirectiveError(reason, given.place)


def _checker(found: RealServer, given: Directive) -> None:
    found.checkers.append(checker(given, found, found.address))


_TOLD: Final = changed(
    "no command is run for one server: `notify` in the appliance's YAML reports all of them"
)

REAL_SERVER: Final[Table[RealServer]] = {
    **times(RealServer),
    **{keyword: Understood(act=_checker, block=True) for keyword in CHECKERS},
    **dict.fromkeys(
        ("DNS_CHECK", "PING_CHECK", "UDP_CHECK", "BFD_CHECK", "FILE_CHECK"),
        refused(_OTHER_CHECK),
    ),
    "weight": Understood(act=_weight, slip="ignores it"),
    "lvs_method": Understood(act=nat),
    "inhibit_on_failure": Understood(act=_inhibit, slip="ignores it"),
    "uthreshold": Understood(act=_most),
    "lthreshold": ignored("belongs to `uthreshold`"),
    "notify_up": _TOLD,
    "notify_down": _TOLD,
    "smtp_alert": MAIL,
    "snmp_name": ignored("there is no SNMP: the metrics show each server"),
}
