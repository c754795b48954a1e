"""Lines that keepalived repeats: `~SEQ(NAME, first, step, last) LINE` and `~LST(NAME, a, b, c) LINE`.

See keepalived.conf(5), "Sequence blocks" and "List blocks".
"""

import re
from dataclasses import dataclass
from typing import Final

from appliance.translation.keepalived.syntax.located_text import LineError, LocatedText

MOST_REPETITIONS: Final = 1000
"""Values of one sequence."""

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_SEQUENCE: Final = re.compile(rf"~SEQ(x?)[ \t]*\([ \t]*({_NAME})[ \t]*,([^()]*)\)[ \t]*")
_LIST: Final = re.compile(r"~LST[ \t]*\(([^()]*)\)[ \t]*")
_ITEM: Final = re.compile(r"[ \t]*(?:\{([^{}]*)\}|([^{},\s]+))[ \t]*(?:,|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """A line, and the values of the variables for each time that it is read."""

    line: LocatedText
    values: tuple[tuple[tuple[str, str], ...], ...]


def repetition(line: LocatedText) -> Repetition:
    """Return how often a line that begins with `~` is read, and with which variables; raises LineError."""
    sequence, listed = _SEQUENCE.match(line.text), _LIST.match(line.text)
    if sequence:
        return Repetition(line=line.part(sequence.end()), values=_sequence(sequence, line))
    if listed:
        return Repetition(line=line.part(listed.end()), values=_listed(listed, line))
    reason = "begins with `~`, which must be `~SEQ(NAME, first, step, last) ...` or `~LST(NAME, a, b) ...`"
    raise LineError(reason, line.place())


def _sequence(match: re.Match[str], line: LocatedText) -> tuple[tuple[tuple[str, str], ...], ...]:
    numbers = [_number(each) for each in match[3].split(",")]
    known = [each for each in numbers if each is not None]
    if len(known) != len(numbers) or len(known) > 3:
        raise LineError("`~SEQ` needs whole numbers: `~SEQ(NAME, first, step, last)`", line.place())
    last = known[-1]
    first = known[0] if len(known) > 1 else (1 if last > 0 else -1)
    step = known[1] if len(known) == 3 else (1 if first <= last else -1)
    if step == 0 or (last - first) * step < 0:
        raise LineError(f"`~SEQ` never gets from {first} to {last} by {step}", line.place())
    count = (last - first) // step + 1
    if count > MOST_REPETITIONS:
        raise LineError(f"repeats the line {count} times: at most {MOST_REPETITIONS}", line.place())
    if match[1] and min(first, last) < 0:
        raise LineError("`~SEQx` has no negative numbers", line.place())
    spelling = "{:x}" if match[1] else "{:d}"
    return tuple(((match[2], spelling.format(first + step * each)),) for each in range(count))


def _listed(match: re.Match[str], line: LocatedText) -> tuple[tuple[tuple[str, str], ...], ...]:
    items = _items(match[1])
    names = items[0] if items else ()
    if len(items) < 2 or any(len(each) != len(names) for each in items):
        reason = "`~LST` needs a name and values, `~LST(NAME, a, b)`, or as many of each in braces"
        raise LineError(reason, line.place())
    if not all(re.fullmatch(_NAME, each) for each in names):
        raise LineError("`~LST` needs names of letters, digits and underscores", line.place())
    return tuple(tuple(zip(names, each, strict=True)) for each in items[1:])


def _items(text: str) -> list[tuple[str, ...]]:
    """Return the items between commas, each as its parts; nothing if the text is no such list."""
    found: list[tuple[str, ...]] = []
    at = 0
    while at < len(text):
        match = _ITEM.match(text, at)
        if match is None:
            return []
        several = match[1]
        found.append((match[2],) if several is None else tuple(each.strip() for each in several.split(",")))
        at = match.end()
    return found


def _number(text: str) -> int | None:
    try:
        return int(text.strip(), 0)
    except ValueError:
        return None
