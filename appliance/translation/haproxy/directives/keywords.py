"""Lines of keywords with values, such as `bind` and `server`: a table has the meaning of each keyword."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.directives.section import Placed
from appliance.translation.haproxy.directives.statement import Statement
from appliance.translation.haproxy.values.quantities import milliseconds, time_alone

_Options = TypeVar("_Options")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyword(Generic[_Options]):
    """A keyword: its number of words, and its effect on the options of the line."""

    values: int
    take: "Callable[[Word[_Options]], None]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Word(Generic[_Options]):
    """A keyword that is being read; `index` is its position among the arguments of the statement."""

    statement: Statement
    options: _Options
    index: int

    @property
    def name(self) -> str:
        """The keyword itself."""
        return self.statement.argument(self.index)

    @property
    def value(self) -> str:
        """The word after it."""
        return self.statement.argument(self.index + 1)

    def placed(self, value: _Value) -> Placed[_Value]:
        """Return a value with the place of the keyword."""
        return Placed(value=value, place=self.statement.line.at(self.statement.first + self.index))

    def read(self, reader: Callable[[str], _Value]) -> Placed[_Value] | None:
        """Return the word after the keyword as a value; if it is invalid, refuse it and return None."""
        try:
            return self.placed(reader(self.value))
        except ValueError as error:
            self.statement.refuse(f"{self.name}: {error}", self.index + 1)
            return None

    def time(self) -> Placed[int] | None:
        """Return the word after the keyword as milliseconds, as `Statement.time`."""
        time, excess = time_alone(self.value)
        if excess:
            reason = f"{self.name} is `{time}`: HAProxy ignores {shown(excess)} after it, with a warning"
            self.statement.change(reason, self.index + 1)
        return self.read(lambda text: milliseconds(time_alone(text)[0]))


TLS_SWITCHES: Final = (
    *("allow-0rtt", "no-sslv3", "no-tls-tickets", "no-tlsv10", "no-tlsv11", "no-tlsv12", "no-tlsv13"),
    *("force-sslv3", "force-tlsv10", "force-tlsv11", "force-tlsv12", "force-tlsv13"),
)
"""Words of HAProxy's `ssl` without a value, of a `bind` and of a `server`."""


def ignored(reason: str, *, values: int = 0) -> Keyword[_Options]:
    """Return a keyword that can safely be left out."""
    return Keyword(
        values=values, take=lambda word: word.statement.ignore(f"{word.name}: {reason}", word.index)
    )


def changed(reason: str, *, values: int = 0) -> Keyword[_Options]:
    """Return a keyword that we handle differently, without a value to pass on."""
    return Keyword(
        values=values, take=lambda word: word.statement.change(f"{word.name}: {reason}", word.index)
    )


def refused(reason: str, *, values: int = 0) -> Keyword[_Options]:
    """Return a keyword that cannot be translated."""
    return Keyword(
        values=values, take=lambda word: word.statement.refuse(f"{word.name}: {reason}", word.index)
    )


def kept(*, values: int = 0) -> Keyword[_Options]:
    """Return a keyword that means the same here, without a value to pass on."""
    return Keyword(values=values, take=lambda _: None)


def take_all(
    statement: Statement, options: _Options, known: Mapping[str, Keyword[_Options]], *, start: int
) -> None:
    """Apply the table to each keyword from an argument on; refuse an unknown one, naming the nearest."""
    at = start
    while at < len(statement.arguments):
        name = statement.argument(at)
        keyword = known.get(name)
        if keyword is None:
            likely = sorted(known, key=lambda each: abs(len(each) - len(name)))[:100]
            statement.refuse(f"{shown(name)} is unknown{statement.report.meant(name, likely)}", at)
            at += 1
        elif at + keyword.values >= len(statement.arguments) and keyword.values:
            statement.refuse(f"{shown(name)} needs a value", at)
            return
        else:
            keyword.take(Word(statement=statement, options=options, index=at))
            at += 1 + keyword.values
