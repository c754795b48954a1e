"""What `mode tcp` would lose in a section: what its lines and those of its defaults say of HTTP and TLS."""

import re
from collections.abc import Iterator
from typing import Final

from appliance.translation.haproxy.directives.section import Section
from appliance.translation.haproxy.text.line import Line
from appliance.translation.haproxy.text.report import Report

_ASKED: Final = r"(?:^acl \S+|[{(] ?!?|%\[|\bif|\bunless) ?"
"""What stands before a word that asks for something of a request."""

_RULE: Final = r"^http-(?:request|response|after-response) "

_USES: Final = tuple(
    (what, re.compile(pattern))
    for what, pattern in (
        ("TLS termination", r"^bind .* ssl(?: |$)"),
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
        ("answers of its own", rf"{_RULE}return\b|^(?:errorfiles?|errorloc30[23]|errorloc|http-error) "),
        ("compression", r"^(?:compression|filter compression)\b"),
        ("a cache", rf"{_RULE}cache-(?:use|store)\b|^filter cache\b"),
        ("balancing by request", r"^balance (?:uri|url_param|hdr)\b"),
    )
)


def lost(section: Section, report: Report) -> str:
    """Return the sentence on what would be lost, each with its first line; "" where that is nothing."""
    found = [
        f"{what} ({report.line_name(line.number)})"
        for what, pattern in _USES
        if (line := _first(section, pattern)) is not None
    ]
    every = " and ".join(filter(None, (", ".join(found[:-1]), *found[-1:])))
    return f"`mode tcp` would lose {every}" if every else ""


def _first(section: Section, pattern: re.Pattern[str]) -> Line | None:
    return next((each for each in _said(section) if pattern.search(" ".join(each.texts))), None)


def _said(section: Section | None) -> Iterator[Line]:
    while section is not None:
        yield from (each for each in section.lines if not each.negation)
        section = section.defaults
