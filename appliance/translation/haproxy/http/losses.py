"""What a section would lose in `mode tcp`: the settings for HTTP and TLS in it and its defaults."""

import re
from collections.abc import Mapping
from typing import Final

from appliance.translation.haproxy.directives.section import Section
from appliance.translation.haproxy.text.line import Line
from appliance.translation.haproxy.text.report import Report

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
