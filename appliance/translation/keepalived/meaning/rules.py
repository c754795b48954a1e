"""Tables of directives: each keyword with what becomes of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from appliance.model.messages.problems import nearest
from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.ledger import Ledger
from appliance.translation.keepalived.meaning.values import faults_in
from appliance.translation.keepalived.syntax.directives import Directive, dispose
from appliance.translation.translation import Outcome

Subject = TypeVar("Subject")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """The same outcome whatever the values are; a block has it as a whole."""

    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood(Generic[Subject]):
    """What a directive does to its subject. `block` tells whether it has one.

    `slip` is what keepalived does with one value that it does not understand, None where it stops.
    """

    act: Callable[[Subject, Directive], None]
    block: bool = False
    slip: str | None = None


Table = Mapping[str, Fixed | Understood[Subject]]


def ignored(reason: str) -> Fixed:
    """Return the rule of a directive that is safely left out."""
    return Fixed(outcome=Outcome.IGNORED, reason=reason)


def changed(reason: str) -> Fixed:
    """Return the rule of a directive that we do otherwise."""
    return Fixed(outcome=Outcome.CHANGED, reason=reason)


def refused(reason: str) -> Fixed:
    """Return the rule of a directive that cannot be obeyed."""
    return Fixed(outcome=Outcome.REFUSED, reason=reason)


def apply(table: Table[Subject], subject: Subject, given: Directive, ledger: Ledger) -> None:
    """Do with one directive what the table says; what is wrong is refused, with its block.

    keepalived leaves out a word that it does not know, and goes on: so do we. Not so with a block within
    another one, whose end it takes for that of the block around it.
    """
    rule = table.get(given.keyword)
    if rule is None and given.block is None:
        ledger.change(given.place, unknown(given.keyword, table))
    elif rule is None:
        dispose(given, Outcome.REFUSED, _unknown(given.keyword, table), ledger)
    elif isinstance(rule, Fixed):
        dispose(given, rule.outcome, rule.reason, ledger)
    elif rule.block and given.block is None:
        ledger.refuse(given.place, f"`{given.keyword}` needs a block: `{{` ... `}}`")
    elif given.block is not None and not rule.block:
        dispose(given, Outcome.REFUSED, f"`{given.keyword}` has no block", ledger)
    else:
        with faults_in(ledger, slip=rule.slip if len(given.values) == 1 else None):
            rule.act(subject, given)


def unknown(keyword: str, table: Mapping[str, object]) -> str:
    """Return what becomes of a word that keepalived does not know."""
    return f"{_unknown(keyword, table)} Left out, as keepalived does"


def _unknown(keyword: str, table: Mapping[str, object]) -> str:
    meant = nearest(keyword, table)
    return f"{shown(keyword)} is unknown here" + (f": did you mean `{meant}`?" if meant else ".")
