"""Tables of directives: each keyword with its translation."""

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
    """The same outcome whatever the values are; for a block, the outcome of the whole block."""

    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood(Generic[Subject]):
    """The effect of a directive on its subject. `block` is whether it has a block.

    `slip` is what keepalived does with a value that it does not understand, None if it stops.
    """

    act: Callable[[Subject, Directive], None]
    block: bool = False
    slip: str | None = None


Table = Mapping[str, Fixed | Understood[Subject]]


def ignored(reason: str) -> Fixed:
    """Return the rule of a directive that can safely be left out."""
    return Fixed(outcome=Outcome.IGNORED, reason=reason)


def changed(reason: str) -> Fixed:
    """Return the rule of a directive that we do differently."""
    return Fixed(outcome=Outcome.CHANGED, reason=reason)


def refused(reason: str) -> Fixed:
    """Return the rule of a directive that cannot be translated."""
    return Fixed(outcome=Outcome.REFUSED, reason=reason)


def apply(table: Table[Subject], subject: Subject, given: Directive, ledger: Ledger) -> None:
    """Apply the table to one directive; an invalid one is refused, with its block.

    keepalived skips an unknown word and continues, and so do we. The exception is a block within another one:
    keepalived takes its end for that of the outer block.
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
        dispose(given, Outcome.REFUSED, f"`{given.keyword}` takes no block", ledger)
    else:
        with faults_in(ledger, slip=rule.slip if len(given.values) == 1 else None):
            rule.act(subject, given)


def unknown(keyword: str, table: Mapping[str, object]) -> str:
    """Return what keepalived does with an unknown word."""
    return f"{_unknown(keyword, table)} Ignored, as in keepalived"


def _unknown(keyword: str, table: Mapping[str, object]) -> str:
    meant = nearest(keyword, table)
    return f"{shown(keyword)} is unknown here" + (f": did you mean `{meant}`?" if meant else ".")
