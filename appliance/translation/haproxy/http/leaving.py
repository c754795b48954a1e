"""The report's wording for sections that read HTTP: each is refused, or left to HAProxy."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.directives.section import Section
from appliance.translation.haproxy.directives.sections import Sections
from appliance.translation.haproxy.http.left_sections import addresses, answers
from appliance.translation.haproxy.http.losses import Losses
from appliance.translation.haproxy.text.lines import CONDITIONALS
from appliance.translation.haproxy.text.report import Report
from appliance.translation.translation import LeftSection, Outcome

SAMPLE: Final = (
    "this is the package's sample (`frontend main`, `static`, `app`), which has no real servers: remove it"
)

_BACKENDS: Final = ("static", "app")
_HERE: Final = "127.0.0.1:"


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
        report.say(Outcome.REFUSED, section.header.at(1), reason)
    return ()


def _runs(section: Section, report: Report) -> str:
    if section.reads_http:
        said = section.settings.texts["mode"]
        report.use(said.place.line)
        return f"runs in `mode http` ({report.line_name(said.place.line)}): HTTP is not read here"
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
        said = "; ".join(filter(None, (why, told.unserved, lost)))
        report.leave_out(section.header.number, f"left to HAProxy (`http: skip`): {said}")
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
    said = section.settings.backend
    name = f" {shown(said.value)}" if said else ""
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
