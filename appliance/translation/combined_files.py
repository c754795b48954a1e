"""Loads a configuration from several files: haproxy.cfg, keepalived.conf, and our own YAML.

They complete each other; a key that two of them set is an error that names both places.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from appliance.model.document.document import Document
from appliance.model.document.layers import Clash, laid_over
from appliance.model.document.tree import Node
from appliance.model.loading.loading import Loaded, load_document
from appliance.model.messages.problems import FilePosition, Finding, FindingTarget, Problem, Severity
from appliance.model.messages.quoting import printable, shown
from appliance.translation.translation import LineOutcome, Outcome, Translation

_SECRETS: Final = frozenset({"auth_pass", "auth", "password", "insecure-password"})
_MOST_LEFT: Final = 20
_HEADERS: Final = re.compile(
    "(?:proxy-)?authorization|cookie", re.IGNORECASE
)  # also within a word: `\r\nCookie:`


def load_together(
    own: Document | None,
    translations: Sequence[Translation],
    *,
    source: str,
    number: int,
    drain: str | None = None,
    node: str | None = None,
    unread: Sequence[Problem] = (),
) -> Loaded:
    """Return the snapshot of our YAML and the files alongside it, or all their problems; never raises.

    `own` is the YAML, None if there is none or it is empty; `source` is its name. `unread` are problems of
    files that could not be read: without such a file much of the others makes no sense, and is not checked.
    The other parameters are those of `loading.load`.
    """
    if unread:
        known = (*unread, *_refusals(translations))
        return load_document(None, source=source, number=number, drain=drain, known=known)
    document, found = together(own, translations, source=source)
    return load_document(document, source=source, number=number, drain=drain, node=node, known=found)


def together(
    own: Document | None, translations: Sequence[Translation], *, source: str
) -> tuple[Document, tuple[Problem, ...]]:
    """Return all files as one document, and the problems found before its keys are checked."""
    found = list(_refusals(translations))
    root = Node(place=FilePosition(line=1, column=1), value={})
    for layer in (*(each.root for each in translations), *([own.root] if own else [])):
        layered = laid_over(root, layer)
        whole = Document(root=layered.root)
        found += [_clash(each, whole, source=source) for each in layered.clashes]
        root = layered.root
    return Document(root=root), tuple(found)


def changes(translations: Sequence[Translation]) -> Iterator[Problem]:
    """Yield a warning for each line that has another meaning here, or is left to HAProxy."""
    for one in translations:
        for line in one.lines:
            if line.outcome is Outcome.CHANGED:
                yield _problem(line, Severity.WARNING)
    yield from _unserved(translations)


def left_to_haproxy(translations: Sequence[Translation]) -> Iterator[str]:
    """Yield, for up to a number of frontends left to HAProxy, where no frontend listens without it."""
    found = [each.message for each in _unserved(translations)]
    yield from found[:_MOST_LEFT]
    if len(found) > _MOST_LEFT:
        yield f"{len(found) - _MOST_LEFT} more are left to HAProxy"


def _unserved(translations: Sequence[Translation]) -> Iterator[Problem]:
    for each in (each for one in translations for each in one.left if each.unserved):
        yield Problem(
            message=f"the {each.kind} {shown(each.name)} is left to HAProxy (`http: skip`): {each.unserved}",
            severity=Severity.WARNING,
            source=each.place.source,
            line=each.place.line,
            column=each.place.column,
        )


def _refusals(translations: Sequence[Translation]) -> Iterator[Problem]:
    return (_problem(line, Severity.ERROR) for one in translations for line in one.refused)


def _problem(line: LineOutcome, severity: Severity) -> Problem:
    place = line.place
    return Problem(
        message=f"{shown(_without_secrets(line.text))}: {printable(line.reason or line.outcome)}",
        severity=severity,
        source=place.source,
        line=place.line,
        column=place.column,
    )


def _without_secrets(text: str) -> str:
    """Return a line cut after a word that passwords may follow: problems are logged."""
    found = _HEADERS.search(text)
    words = (text[: found.end()] if found else text).split()
    end = next((at for at, word in enumerate(words) if word in _SECRETS), len(words))
    return " ".join(words[: end + 1])


def _clash(clash: Clash, whole: Document, *, source: str) -> Problem:
    """Return the problem of a key that two files set, at its place in the later one."""
    below, above = clash.below, clash.above
    message = f"{below.source or source} sets this too, on line {below.line}: remove it from one of them"
    finding = Finding(path=clash.path, message=message, spot=FindingTarget.KEY)
    path = whole.problem(finding, source=source).path  # without secrets
    return Problem(
        message=printable(message),
        source=above.source or source,
        path=path,
        line=above.line,
        column=above.column,
    )
