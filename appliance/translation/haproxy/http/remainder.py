"""The haproxy.cfg with which HAProxy continues: the sections left to it, and those that they name.

It keeps `global`, each `defaults`, everything else that is not a proxy section, and conditional blocks, all
unchanged. A translated backend stays in it if a section that is left names it (`nbsrv(masters)`, `track`),
without the lines that accept clients.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import Final

from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.directives.proxy_table import directive_of
from appliance.translation.haproxy.directives.section import Kind, Section
from appliance.translation.haproxy.directives.sections import Sections
from appliance.translation.haproxy.text.lines import CONDITIONALS, Line

_NAME: Final = re.compile(r"[A-Za-z0-9_.:-]+")
_SERVERS: Final = frozenset({"server", "server-template", "dispatch"})
_ASKING: Final = frozenset({"acl", "default_backend", "monitor", "use_backend"})
_COMPUTED: Final = "%["

_OF_FRONTENDS: Final = frozenset({("tcp-request", "connection"), ("tcp-request", "session")})
_HEAD: Final = (
    (
        "# HAProxy continues with this file: the sections that read HTTP. `appliance import --http skip` "
        "wrote it;"
    ),
    "# the appliance serves the other frontends.",
    "",
)


def left_sections(sections: Sequence[Section]) -> list[Section]:
    """Return the sections that are left to HAProxy, in their order.

    Unreachable sections are not among them: disabled ones, and those without a `bind`.

    HAProxy reads HTTP in `mode http`, and also for clients of a frontend in `mode tcp` whose default backend
    is in `mode http`: such a frontend is left to it.
    """
    sections = [each for each in sections if not each.is_disabled]
    http = [each for each in sections if each.reads_http]
    targets = {each.name: each for each in sections if each.kind.has_servers}
    served = {each.name for each in http if each.kind.has_servers and _has_servers(each)}
    fronts = [each for each in sections if addresses(each) and _is_left(each, served, targets)]
    named = names({word for front in fronts for word in _words(front.lines)})
    computed = any(_computes(each) for each in fronts)
    backends = [
        each
        for each in http
        if each.kind is Kind.BACKEND and (each.name in served or each.name in named or computed)
    ]
    found = {each.header.number for each in (*fronts, *backends)}
    return [each for each in sections if each.header.number in found]


def names(words: Iterable[str]) -> frozenset[str]:
    """Return all possible section names in some words: `nbsrv(web)` has `web`."""
    return frozenset(name for word in words for name in _NAME.findall(word))


def addresses(section: Section) -> tuple[str, ...]:
    """Return where a section listens, in the words of the file; nowhere if it accepts no clients."""
    if not section.kind.takes_clients:
        return ()
    lines = (each for each in section.lines if each.text(0) == "bind" and not each.negation)
    header = section.header.text(2)
    words = (header if header != "from" else "", *(each.text(1) for each in lines))
    found = (each for word in words for each in word.split(",") if each)
    return tuple(dict.fromkeys(shown(each).strip("`") for each in found))


def _is_left(section: Section, served: Set[str], targets: Mapping[str, Section]) -> bool:
    given = section.settings.backend
    target = given.value if given else ""
    behind = targets.get(target)
    if not section.reads_http:
        return behind is not None and behind.reads_http and (target in served or not answers(behind))
    if section.kind is Kind.LISTEN and section.name in served:
        return True
    asked = names(_words(each for each in section.lines if each.text(0) in _ASKING))
    if target in served or not asked.isdisjoint(served) or _computes(section):
        return True
    return not any(map(answers, filter(None, (section, behind))))


def answers(section: Section) -> bool:
    """Return whether a section has statistics or a monitor."""
    return section.settings.stats.on is not None or "monitor-uri" in section.settings.texts


def _words(lines: Iterable[Line]) -> Iterable[str]:
    return (word for line in lines for word in line.texts[1:])


def _has_servers(section: Section) -> bool:
    return any(each.text(0) in _SERVERS for each in section.lines)


def _computes(section: Section) -> bool:
    """Return whether a rule computes the backend's name."""
    return any(_computed(each) for each in section.lines)


def _computed(line: Line) -> bool:
    return line.text(0) in {"use_backend", "default_backend"} and _COMPUTED in line.text(1)


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
