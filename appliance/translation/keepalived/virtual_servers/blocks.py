"""A `virtual_server`, `real_server` or checker while it is read, and the directives that all of them have."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from appliance.model.config.values.addresses import Endpoint, literal
from appliance.model.messages.problems import FilePosition
from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.ledger import Ledger
from appliance.translation.keepalived.meaning.directive_handling import ignored
from appliance.translation.keepalived.meaning.values import DirectiveError, only, whole
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.syntax.located_text import Word

Numbers = dict[str, tuple[Decimal, FilePosition]]
"""Times in seconds and counts, by keyword."""

ALPHA: Final = ignored("a server never takes connections before its first check")
MAIL: Final = ignored("no email is sent: `notify` in the appliance's YAML reports each server")


@dataclass(slots=True, kw_only=True)
class Block:
    """One of these blocks while it is being read."""

    head: Directive
    ledger: Ledger
    numbers: Numbers = field(default_factory=dict)
    virtualhost: Word | None = None


def endpoint(given: Directive, *, port: int = 0) -> Endpoint:
    """Return `ADDRESS [PORT]` after a keyword; without a port, or with 0, the port is `port`."""
    if not given.values:
        raise DirectiveError(f"`{given.keyword}` needs an address", given.place)
    host, *rest = given.values
    found = literal(host.text)
    if found is None:
        raise DirectiveError(f"must be an address such as `192.0.2.34`, not {shown(host.text)}", host.place)
    if found.is_loopback:
        reason = f"packets from other hosts do not reach {shown(host.text)}: write this node's own address"
        raise DirectiveError(reason, host.place)
    number = whole(rest[0], least=0, most=65535) if rest else 0
    if not number and not port:
        reason = (
            "one entry cannot cover all ports of an address: write a `virtual_server ADDRESS PORT` for each"
        )
        raise DirectiveError(reason, given.place)
    return Endpoint(host=str(found), port=number or port)


def take_virtualhost(block: Block, given: Directive) -> None:
    """Take `virtualhost`, the host that its checks ask for."""
    block.virtualhost = only(given)
