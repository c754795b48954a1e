"""Directives shared by `virtual_server`, `real_server` and checkers: how often a server is checked, its host.

A block without such a directive inherits it from the block around it.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, TypeVar

from appliance.model.config.values.addresses import Endpoint, literal
from appliance.model.messages.problems import FilePosition
from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.ledger import Ledger
from appliance.translation.keepalived.meaning.rules import Table, Understood, ignored
from appliance.translation.keepalived.meaning.values import DirectiveError, only, seconds, whole
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.syntax.located_text import Word

Numbers = dict[str, tuple[Decimal, FilePosition]]
"""Times in seconds and counts, by keyword."""

MOST_NUMBER: Final = 2**32 - 1
"""keepalived's largest count."""

ALPHA: Final = ignored("a server never takes connections before its first check")
MAIL: Final = ignored("no email is sent: `notify` in the appliance's YAML reports each server")
_WARMUP: Final = ignored("the first checks run at once, and later ones are spread")
_SLIP: Final = "ignores it"


@dataclass(slots=True, kw_only=True)
class Block:
    """One of these blocks while it is being read."""

    head: Directive
    ledger: Ledger
    numbers: Numbers = field(default_factory=dict)
    virtualhost: Word | None = None


SomeBlock = TypeVar("SomeBlock", bound=Block)


def times(kind: type[SomeBlock]) -> Table[SomeBlock]:
    """Return the rules for checks that all these blocks share; keepalived ignores values out of range."""
    del kind
    return {
        "delay_loop": Understood(act=_time, slip=_SLIP),
        "connect_timeout": Understood(act=_time, slip=_SLIP),
        "delay_before_retry": Understood(act=_time_or_none, slip=_SLIP),
        "retry": Understood(act=_retry, slip=_SLIP),
        "virtualhost": Understood(act=_virtualhost),
        "warmup": _WARMUP,
        "alpha": ALPHA,
    }


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


def _time(block: Block, given: Directive) -> None:
    word = only(given)
    found = seconds(word)
    if not found:
        raise DirectiveError("must be more than 0", word.place)
    block.numbers[given.keyword] = (found, word.place)


def _time_or_none(block: Block, given: Directive) -> None:
    word = only(given)
    block.numbers[given.keyword] = (seconds(word), word.place)


def _retry(block: Block, given: Directive) -> None:
    word = only(given)
    block.numbers["retry"] = (Decimal(whole(word, least=1, most=MOST_NUMBER)), word.place)


def _virtualhost(block: Block, given: Directive) -> None:
    block.virtualhost = only(given)
