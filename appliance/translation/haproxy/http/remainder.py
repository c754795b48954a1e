"""The haproxy.cfg with which HAProxy continues: the sections left to it, and those that they name.

It keeps `global`, each `defaults`, everything else that is not a proxy section, and conditional blocks, all
unchanged. A translated backend stays in it if a section that is left names it (`nbsrv(masters)`, `track`),
without the lines that accept clients.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from appliance.translation.haproxy.directives.proxy_table import directive_of
from appliance.translation.haproxy.directives.section import Kind, Section
from appliance.translation.haproxy.directives.sections import Sections
from appliance.translation.haproxy.http.left_sections import names
from appliance.translation.haproxy.text.lines import CONDITIONALS, Line

_OF_FRONTENDS: Final = frozenset({("tcp-request", "connection"), ("tcp-request", "session")})
_HEAD: Final = (
    (
        "# HAProxy continues with this file: the sections that read HTTP. `appliance import --http skip` "
        "wrote it;"
    ),
    "# the appliance serves the other frontends.",
    "",
)


def remainder(text: str, sections: Sections, left: Sequence[Section]) -> str:
    """Return that file. `text` is all files, one after the other, each with its last line break."""
    lines = [each.rstrip("\r") for each in text.split("\n")]
    stay = {each.header.number for each in left}
    beside = {each.header.number for each in _named(sections.proxies, left)}
    found: dict[int, str | None] = {}
    ends = dict(pairwise((*sections.starts, len(lines) + 1)))
    for section in sections.proxies:
        first, end = section.header.number, ends[section.header.number]
        if first in beside:
            found |= _as_backend(section)
        elif first not in stay:
            found |= dict.fromkeys(_extent(lines, first, end))
    kept = (found.get(at, line) for at, line in enumerate(lines, start=1))
    return "\n".join((*_HEAD, *_with_single_gaps(each for each in kept if each is not None)))


def _named(proxies: Sequence[Section], left: Sequence[Section]) -> Sequence[Section]:
    """Return the translated sections with servers that the left ones name, directly or indirectly."""
    backends = {each.name: each for each in proxies if each.kind.has_servers}
    seen = {each.name for each in left if each.kind.has_servers}
    found: list[Section] = []
    waiting = list(left)
    while waiting:
        words = (word for line in waiting.pop().lines for word in line.texts[1:])
        for name in names(words) & backends.keys() - seen:
            seen.add(name)
            found.append(backends[name])
            waiting.append(backends[name])
    return found


def _as_backend(section: Section) -> Mapping[int, str | None]:
    """Return the lines of a section, changed so that it accepts no clients."""
    if section.kind is Kind.BACKEND:
        return {}
    header = section.header.texts
    base = header[header.index("from") :] if "from" in header else ()
    found: dict[int, str | None] = {each.number: None for each in section.lines if _is_of_clients(each)}
    return found | {section.header.number: " ".join(("backend", section.name, *base))}


def _is_of_clients(line: Line) -> bool:
    """Return whether HAProxy ignores a line in a backend, or does not start with it there."""
    directive, _ = directive_of(line)
    return directive is None or not directive.place.includes(Kind.BACKEND) or line.texts[:2] in _OF_FRONTENDS


def _extent(lines: Sequence[str], first: int, end: int) -> Iterator[int]:
    """Yield the lines of a section except conditional ones, with the comment directly before it."""
    while first > 1 and _is_comment(lines[first - 2]):
        first -= 1
    while end > first and (_is_comment(lines[end - 2]) or not lines[end - 2].strip()):
        end -= 1
    return (at for at in range(first, end) if not lines[at - 1].strip().startswith(tuple(CONDITIONALS)))


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _with_single_gaps(lines: Iterable[str]) -> Iterator[str]:
    above = ""
    for line in lines:
        if line.strip() or above.strip():
            yield line
        above = line
