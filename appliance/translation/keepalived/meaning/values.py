"""Values of directives: whole numbers, times in seconds, addresses. Invalid ones raise DirectiveError."""

import re
from collections.abc import Container, Iterator
from contextlib import contextmanager
from decimal import Decimal
from itertools import count
from typing import Final

from appliance.model.config.values.addresses import Address, literal
from appliance.model.messages.problems import FilePosition
from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.ledger import Ledger
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.syntax.located_text import Word

_FOREIGN: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST: Final = 63
_ROOM: Final = 6  # for a hyphen and a number

LONGEST_TIME: Final = 86400 * 365
"""Seconds: the longest duration of our configuration."""

_WHOLE: Final = re.compile(r"[-+]?[0-9]{1,10}", re.ASCII)
_TIME: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?|\.[0-9]{1,9}", re.ASCII)
_TRUE: Final = frozenset(("true", "on", "yes"))
_FALSE: Final = frozenset(("false", "off", "no"))


def own_name(wanted: str, taken: Container[str] = ()) -> str:
    """Return the valid name nearest to the wanted one that is not taken."""
    name = _FOREIGN.sub("-", wanted)[:_LONGEST] or "unnamed"
    if name not in taken:
        return name
    numbered = (f"{name[: _LONGEST - _ROOM]}-{number}" for number in count(2))
    return next(each for each in numbered if each not in taken)


class DirectiveError(Exception):
    """A value that cannot be translated: why, and what to write instead; `place` is its position."""

    def __init__(self, reason: str, place: FilePosition) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place


@contextmanager
def faults_in(ledger: Ledger, *, slip: str | None = None) -> Iterator[None]:
    """Note an invalid value and go on; `slip` is what keepalived does with it, and so do we."""
    try:
        yield
    except DirectiveError as fault:
        if slip is None:
            ledger.refuse(fault.place, fault.reason)
        else:
            ledger.change(fault.place, f"{fault.reason}: keepalived {slip}, and so does the appliance")


def only(given: Directive) -> Word:
    """Return the one word after a keyword."""
    if len(given.values) == 1:
        return given.values[0]
    if not given.values:
        raise DirectiveError(f"`{given.keyword}` needs a value", given.place)
    raise DirectiveError(
        f"`{given.keyword}` takes one value: {shown(given.values[1].text)} is one too many",
        given.values[1].place,
    )


def whole(word: Word, *, least: int, most: int) -> int:
    """Return a whole number within a range."""
    if _WHOLE.fullmatch(word.text) and least <= int(word.text) <= most:
        return int(word.text)
    raise DirectiveError(f"must be a whole number from {least} to {most}, not {shown(word.text)}", word.place)


def seconds(word: Word) -> Decimal:
    """Return a time in seconds, with or without a fraction."""
    if _TIME.fullmatch(word.text) and Decimal(word.text) <= LONGEST_TIME:
        return Decimal(word.text)
    raise DirectiveError(f"must be seconds such as `1` or `0.5`, not {shown(word.text)}", word.place)


def duration(time: Decimal) -> str:
    """Return a time as our configuration writes it: `5s`, `250ms`; less than a millisecond becomes one."""
    milliseconds = max(round(time * 1000), 1) if time else 0
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"


def duration_or_off(time: Decimal) -> str:
    """Return a time as our configuration writes it, `off` for 0."""
    return duration(time) if time else "off"


def is_on(given: Directive) -> bool:
    """Return whether a switch is on; without a word it is on."""
    if not given.values:
        return True
    word = only(given)
    if word.text in _TRUE | _FALSE:
        return word.text in _TRUE
    raise DirectiveError(f"must be on, true, yes, off, false or no, not {shown(word.text)}", word.place)


def address(word: Word) -> Address:
    """Return a literal address."""
    found = literal(word.text.partition("%")[0])
    if found is None:
        raise DirectiveError(f"must be an address such as `10.0.0.34`, not {shown(word.text)}", word.place)
    return found
