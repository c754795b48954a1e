"""The report's wording for sections that read HTTP: each is refused, or left to HAProxy."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.directives.section import Section
from appliance.translation.haproxy.directives.sections import Sections
from appliance.translation.haproxy.http.remainder import addresses, answers
from appliance.translation.haproxy.text.lines import CONDITIONALS, Line
from appliance.translation.haproxy.text.report import Report
from appliance.translation.translation import LeftSection, Outcome

_ASKED: Final = r"(?:^acl \S+|[{(] ?!?|%\[|\bif|\bunless) ?"
"""Prefixes of a word that reads something from a request."""

_RULE: Final = r"^http-(?:request|response|after-response) "

_USES: Final = tuple(
    (what, re.compile(pattern))
    for what, pattern in (
        ("TLS termination", r"^bind .* ssl(?: |$)"),
        ("TLS to servers", r"^(?:default-)?server .* ssl(?: |$)"),
        ("redirects", rf"^redirect |{_RULE}redirect\b"),
        ("rules by path", rf"{_ASKED}(?:path|url|urlp|pathq|base|query)(?:_\w+)?[ ,}}(\]]"),
        (
            "rules by host, header or method",
            rf"{_ASKED}(?:hdr|req\.f?hdr|res\.f?hdr|s?cook|req\.cook|method)(?:_\w+)?[ ,}}(\]]",
        ),
        ("cookies", r"^(?:cookie|dynamic-cookie-key) "),
        (
            "header changes",
            rf"{_RULE}(?:add|set|del|replace)-(?:header|value)\b|^option (?:forwardfor|originalto)\b",
        ),
        ("rewritten paths", rf"{_RULE}(?:set|replace)-(?:path|pathq|uri|query)\b"),
        ("passwords", rf"{_RULE}auth\b|\bhttp_auth"),
        ("refused requests", rf"{_RULE}(?:deny|tarpit|reject|silent-drop)\b"),
        ("its own answers", rf"{_RULE}return\b"),
        ("error pages", r"^(?:errorfiles?|errorloc|errorloc30[23]|http-error) "),
        ("compression", r"^(?:compression|filter compression)\b"),
        ("a cache", rf"{_RULE}cache-(?:use|store)\b|^filter cache\b"),
        ("balancing by request", r"^balance (?:uri|url_param|hdr)\b"),
    )
)

SAMPLE: Final = (
    "this is the package's sample (`frontend main`, `static`, `app`), which has no real servers: remove it"
)

_BACKENDS: Final = ("static", "app")
_HERE: Final = "127.0.0.1:"


class Losses:
    """The losses found so far: each section is examined once, however many have its `defaults`."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._found: dict[int, Mapping[str, Line]] = {}

    def told(self, section: Section) -> str:
        """Return the sentence on the losses, each with its first line; "" without losses."""
        lines = self._lines(section)
        found = [
            f"{what} ({self._report.line_name(lines[what].number)})" for what, _ in _USES if what in lines
        ]
        every = " and ".join(filter(None, (", ".join(found[:-1]), *found[-1:])))
        return f"`mode tcp` would lose {every}" if every else ""

    def _lines(self, section: Section) -> Mapping[str, Line]:
        """Return the line of each loss, with the section's own before those of its `defaults`."""
        waiting = []
        owner: Section | None = section
        while owner is not None and owner.header.number not in self._found:
            waiting.append(owner)
            owner = owner.defaults
        found = self._found[owner.header.number] if owner is not None else {}
        for each in reversed(waiting):
            found = self._found[each.header.number] = {**found, **_own(each)}
        return found


def _own(section: Section) -> Mapping[str, Line]:
    found: dict[str, Line] = {}
    for line in (each for each in section.lines if not each.negation):
        text = " ".join(line.texts)
        for what, pattern in _USES:
            if what not in found and pattern.search(text):
                found[what] = line
    return found


def sample_sections(sections: Sequence[Section]) -> Sequence[Section]:
    """Return the three sections of the sample; none if one is missing or has other servers."""
    named = {(each.kind.value, each.name): each for each in sections}
    main = named.get(("frontend", "main"))
    backends = [each for name in _BACKENDS if (each := named.get(("backend", name))) is not None]
    if main is None or len(backends) < len(_BACKENDS) or not all(map(_has_nobodys_servers, backends)):
        return ()
    used = {each.text(1) for each in main.lines if each.text(0) in {"use_backend", "default_backend"}}
    return (main, *backends) if used == set(_BACKENDS) else ()


def _has_nobodys_servers(backend: Section) -> bool:
    servers = [each.text(2) for each in backend.lines if each.text(0) == "server"]
    return bool(servers) and all(each.startswith(_HERE) for each in servers)


_LEFT: Final = "its section is left to HAProxy (`http: skip`)"
_UNUSED: Final = "only sections that are left to HAProxy (`http: skip`) use it"
_REFUSED: Final = "its section is refused"
_TO_HAPROXY: Final = "leave the section to HAProxy (`http: skip`)"
_MODE_TCP: Final = "write `mode tcp`, which leaves HTTP and TLS to the servers"


def refuse(left: Sequence[Section], sections: Sections, report: Report) -> tuple[()]:
    """Refuse some sections, each in one line with the remedy; return an empty result."""
    sample, losses = {each.header.number for each in sample_sections(left)}, Losses(report)
    for section in left:
        _leave_lines(section, sections, _REFUSED, report)
        instead = SAMPLE if section.header.number in sample else _instead(section, losses)
        reason = f"the {section.kind} {shown(section.name)} {_runs(section, report)}: {instead}"
        report.add(Outcome.REFUSED, section.header.at(1), reason)
    return ()


def _runs(section: Section, report: Report) -> str:
    if section.reads_http:
        given = section.settings.texts["mode"]
        report.use(given.place.line)
        return f"runs in `mode http` ({report.line_name(given.place.line)}): HTTP is not read here"
    return f"{_has_backend(section)}: HTTP is not read here"


def _instead(section: Section, losses: Losses) -> str:
    if lost := losses.told(section):
        return f"{lost}; write it, or {_TO_HAPROXY}"
    return f"{_TO_HAPROXY}: it depends on a backend that reads HTTP" if answers(section) else _MODE_TCP


def leave(left: Sequence[Section], sections: Sections, report: Report) -> tuple[LeftSection, ...]:
    """Report the lines of some sections as left to HAProxy; return these sections for the operator."""
    found = tuple(_told(each, report) for each in left)
    sample, losses = {each.header.number for each in sample_sections(left)}, Losses(report)
    for section, told in zip(left, found, strict=True):
        why = "it reads HTTP" if section.reads_http else f"it {_has_backend(section)}"
        lost = SAMPLE if section.header.number in sample else losses.told(section)
        given = "; ".join(filter(None, (why, told.unserved, lost)))
        report.leave_out(section.header.number, f"left to HAProxy (`http: skip`): {given}")
        _leave_lines(section, sections, _LEFT, report)
    _leave_defaults(left, sections, report)
    return found


def _leave_lines(section: Section, sections: Sections, reason: str, report: Report) -> None:
    """Report all lines of a section, and the conditional blocks within it, as left to HAProxy."""
    for line in section.lines:
        report.leave(line.number, reason)
    first = section.header.number
    at = bisect_right(sections.starts, first)
    end = sections.starts[at] if at < len(sections.starts) else report.last + 1
    blocks: list[list[int]] = []
    for number, word in report.starting_with(CONDITIONALS, first, end):
        if word == ".if":
            blocks.append([])
        for block in blocks[-1:]:
            block.append(number)
        for each in blocks.pop() if word == ".endif" and blocks else ():
            report.leave_out(each, reason)


def _told(section: Section, report: Report) -> LeftSection:
    place = report.located(section.header.at(1))
    return LeftSection(
        kind=section.kind.value,
        name=section.name,
        place=place,
        addresses=addresses(section),
    )


def _has_backend(section: Section) -> str:
    given = section.settings.backend
    name = f" {shown(given.value)}" if given else ""
    return f"has the backend{name} in `mode http`, so HAProxy reads its clients' HTTP"


def _leave_defaults(left: Sequence[Section], sections: Sections, report: Report) -> None:
    """Report `defaults` and lines of other sections as left too, if nothing else uses them."""
    numbers = {each.header.number for each in left}
    others = (each for each in sections.proxies if each.header.number not in numbers)
    shared = {each.header.number for each in _defaults(others)}
    for section in _defaults(left):
        is_shared = section.header.number in shared
        if not is_shared:
            report.leave_out(section.header.number, _UNUSED)
        for line in section.lines:
            if is_shared:
                report.explain_unused(line.number, _UNUSED)
            else:
                report.leave(line.number, _UNUSED)


def _defaults(sections: Iterable[Section]) -> Iterator[Section]:
    """Yield the `defaults` of some sections, each once."""
    found: dict[int, Section] = {}
    for each in sections:
        section = each.defaults
        while section is not None and section.header.number not in found:
            found[section.header.number] = section
            section = section.defaults
    yield from found.values()
