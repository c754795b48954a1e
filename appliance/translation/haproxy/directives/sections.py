"""Assigns each line to its section and applies its directive; later rooms combine the sections."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.directives.binds import bind
from appliance.translation.haproxy.directives.global_table import (
    GLOBAL,
    Global,
    GlobalStatement,
    global_directive,
)
from appliance.translation.haproxy.directives.proxy_table import PROXY, directive_of
from appliance.translation.haproxy.directives.section import Kind, Section, Settings
from appliance.translation.haproxy.directives.statement import Statement
from appliance.translation.haproxy.text.lines import Line
from appliance.translation.haproxy.text.report import Report
from appliance.translation.haproxy.text.variables import Variables
from appliance.translation.haproxy.values.names import foreign
from appliance.translation.translation import Outcome

_HTTP: Final = (Outcome.IGNORED, "it is for HTTP, which is not read here")
_TLS: Final = (Outcome.IGNORED, "TLS is not terminated here")
_LOG: Final = (Outcome.IGNORED, "logging is configured in the section `log` of our own file")

OTHERS: Final[Mapping[str, tuple[Outcome, str]]] = {
    "peers": (Outcome.IGNORED, "there are no tables to share: lines that use them are judged separately"),
    "resolvers": (Outcome.IGNORED, "this machine's own resolver (/etc/resolv.conf) resolves names"),
    "userlist": (Outcome.IGNORED, "users are for HTTP; lines that use them are judged separately"),
    "mailers": (
        Outcome.IGNORED,
        "no mail is sent: the log, `appliance status` and the metrics report the same",
    ),
    "cache": _HTTP,
    "http-errors": _HTTP,
    "fcgi-app": _HTTP,
    "ring": _LOG,
    "traces": _LOG,
    "log-profile": _LOG,
    "crt-store": _TLS,
    "acme": _TLS,
    "program": (Outcome.IGNORED, "other programs are not started here: run it as a systemd unit"),
    "log-forward": (Outcome.REFUSED, "logs of other programs are not forwarded: use rsyslog or journald"),
}
"""The outcome of each line of a section, by the section's first word."""


MOST_SECTIONS: Final = 5000

_KINDS: Final = frozenset(Kind)
_HEADERS: Final = frozenset({"global", *Kind, *OTHERS})


@dataclass(slots=True, kw_only=True)
class Sections:
    """The content of all files: the global section, and frontends, backends and listens in their order.

    `starts` are the numbers of the lines that begin a section of any kind.
    """

    found: Global = field(default_factory=Global)
    proxies: list[Section] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)


def read_sections(files: Iterable[Iterable[Line]], report: Report, variables: Variables) -> Sections:
    """Return all files' sections; each ends with its file, `defaults` stay. Reports bad lines."""
    reader = _Reader(report, variables)
    for lines in files:
        for line in lines:
            reader.line(line)
        reader.end(report.last)
    return reader.sections


class _Reader:
    """Keeps the section of the current line, and the defaults for the next section."""

    def __init__(self, report: Report, variables: Variables) -> None:
        self.sections = Sections()
        self._report = report
        self._variables = variables
        self._current: Section | str = ""
        self._defaults: Section | None = None
        self._named: dict[str, Section] = {}
        self._names: dict[str, Line] = {}
        self._misnamed: Section | None = None

    def line(self, line: Line) -> None:
        word = line.text(0)
        if word in _HEADERS and not line.negation:
            self._header(line)
        elif isinstance(self._current, Section):
            self._directive(line, self._current)
        elif self._current == "global":
            self._global(line)
        elif self._current:
            outcome, reason = OTHERS[self._current]
            self._report.add(outcome, line.place, reason)
        else:
            hint = self._report.meant(word, sorted(_HEADERS))
            self._refuse(line, f"{shown(word)} comes before the first section{hint}")

    def end(self, last: int) -> None:
        """Close the current section, whose last line is now known."""
        if isinstance(self._current, Section):
            header = self._current.header.number
            found = self._report.refused_guard(header + 1, last)
            if self._report.is_refused(header):
                found = header  # it names unknown defaults, which may keep clients out
            self._current.settings.unguarded = found or self._current.settings.unguarded
            for line in self._current.lines if self._current is self._misnamed else ():
                self._report.leave_out(line.number, "its section is refused, and left out")
        self._current = ""

    def _header(self, line: Line) -> None:
        self.end(line.number - 1)
        word = line.text(0)
        self.sections.starts.append(line.number)
        self._variables.section = line.text(1) or word
        if word in _KINDS:
            self._current = self._proxy(line, Kind(word))
            return
        self._current = word
        if word in OTHERS:
            outcome, reason = OTHERS[word]
            self._report.add(outcome, line.place, reason)

    def _proxy(self, line: Line, kind: Kind) -> Section:
        base, rest = self._base(line)
        if kind is Kind.DEFAULTS and not rest:
            base = None  # a `defaults` starts empty, whatever the one before it set
        name = line.text(1) if line.text(1) != "from" or kind is not Kind.DEFAULTS else ""
        settings = (base.settings if base else Settings()).handed_on()
        section = Section(kind=kind, name=name, header=line, settings=settings, defaults=base)
        if kind is Kind.DEFAULTS:
            self._defaults = section
            if name:
                self._named[name] = section
            return section
        if self._named_well(section):
            self.sections.proxies.append(section)
        else:
            self._misnamed = section
        return section

    def _base(self, line: Line) -> tuple[Section | None, bool]:
        """Return the `defaults` that a section starts with, and whether the line names them with `from`."""
        words = line.texts[1:]
        if "from" not in words:
            return self._defaults, False
        at = words.index("from") + 1
        found = self._named.get(line.text(at + 1))
        if found is None:
            self._refuse(line, f"there is no `defaults {line.text(at + 1)}` before this line", at + 1)
            return None, True
        return found, True

    def _named_well(self, section: Section) -> bool:
        line = section.header
        if not section.name:
            self._refuse(line, f"the section needs a name: `{section.kind} NAME`")
            return False
        fault = foreign(section.name)
        if fault:
            self._refuse(line, fault, 1)
            return False
        if len(self.sections.proxies) >= MOST_SECTIONS:
            self._refuse(line, f"there are more than {MOST_SECTIONS} sections")
            return False
        if len(line.words) > 2 and line.text(2) != "from":
            # HAProxy 1 accepted the address of a `bind` here.
            bind(Statement(line=line, section=section, report=self._report, first=2))
        if not section.kind.has_servers:
            return True
        first = self._names.setdefault(section.name, line)
        if first is not line:
            name = self._report.line_name(first.number)
            self._refuse(line, f"{name} already defines servers under this name", 1)
        return first is line

    def _directive(self, line: Line, section: Section) -> None:
        found, length = directive_of(line)
        if found is None:
            self._unknown(line, PROXY)
            return
        section.lines.append(line)
        statement = Statement(line=line, section=section, report=self._report, first=length)
        name = " ".join(line.texts[:length])
        if line.negation and not found.negatable:
            self._refuse(line, f"`{line.negation}` cannot precede {shown(name)}")
        elif not found.place.includes(section.kind):
            statement.ignore(f"{shown(name)} has no effect in a `{section.kind}`")
        else:
            found.handle(statement)

    def _global(self, line: Line) -> None:
        statement = GlobalStatement(
            line=line, found=self.sections.found, report=self._report, variables=self._variables
        )
        if not global_directive(statement, GLOBAL):
            self._unknown(line, GLOBAL)

    def _unknown(self, line: Line, known: Iterable[str]) -> None:
        word = line.text(0)
        first, families = _families(tuple(known))
        second = families.get(word, ())
        written = f"{word} {line.text(1)}".strip() if second else word
        hint = self._report.meant(written, (second or first)[:100])
        self._refuse(line, f"{shown(written)} is unknown{hint}", 1 if second else 0)

    def _refuse(self, line: Line, reason: str, index: int = 0) -> None:
        self._report.add(Outcome.REFUSED, line.at(index), reason)


@cache
def _families(known: tuple[str, ...]) -> tuple[tuple[str, ...], Mapping[str, tuple[str, ...]]]:
    """Return the first words of directives, each with the second words that may follow."""
    first = sorted({each.partition(" ")[0] for each in known})
    families = {word: tuple(each for each in known if each.startswith(f"{word} ")) for word in first}
    return tuple(first), families
