"""The sections left to HAProxy: those that read HTTP, and are neither our page nor an answer of ours.

HAProxy reads HTTP in `mode http`, and also for clients of a frontend in `mode tcp` whose default backend is
in `mode http`: such a frontend is left to it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final

from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.directives.section import Kind, Section
from appliance.translation.haproxy.text.lines import Line

_NAME: Final = re.compile(r"[A-Za-z0-9_.:-]+")
_SERVERS: Final = frozenset({"server", "server-template", "dispatch"})
_ASKING: Final = frozenset({"acl", "default_backend", "monitor", "use_backend"})
_COMPUTED: Final = "%["


def left_sections(sections: Sequence[Section]) -> list[Section]:
    """Return the sections that are left to HAProxy, in their order.

    Unreachable sections are not among them: disabled ones, and those without a `bind`.
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
    said = section.settings.backend
    target = said.value if said else ""
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
