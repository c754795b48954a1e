"""A configuration without its secrets, for people who help the operator; and the secrets, to find elsewhere.

Values are hidden by the names of keys, in the operator's file and in snapshots alike. In doubt a value is
hidden: whoever needs it asks.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from appliance.model.messages.quoting import printable
from appliance.model.messages.secrets import PLACES

Path = tuple[str | int, ...]

HIDDEN: Final = "***"

SHORTEST: Final = 4
"""Characters of the shortest secret to look for elsewhere: any text has shorter ones by chance."""

_WORD: Final = 8
"""The same for arguments of commands and parts of URLs, most of which are not secret."""

_KEYS: Final = (PLACES - {"auth"}) | frozenset(
    (
        *("authorization", "body", "credential", "credentials", "data", "env", "environment", "headers"),
        *("passphrase", "routing_key", "secrets", "token", "arguments", "send", "send_binary"),
    )
)
"""Everything at or below one of these is hidden, except paths of files."""

_FILES: Final = frozenset(("password_file", "token_file", "kubeconfig", "certificate", "ca", "file"))
"""Paths of files, which a ticket needs; the files' content is never shown."""

_COMMANDS: Final = frozenset(("active", "any", "backup", "command", "exec", "fault", "script", "stop"))
"""Commands: their program is shown, their arguments may hold anything."""

_URLS: Final = frozenset(("url", "webhook", "alertmanager"))
"""Addresses whose path may be the secret: only the host is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """A value without secrets, and the texts that were removed from it."""

    value: object
    secrets: frozenset[str]


def redacted(value: object, *, unknown: frozenset[Path] = frozenset()) -> Redacted:
    """Return plain values (mappings, lists, texts, numbers) without secrets.

    Everything at or below a path of `unknown` is hidden too, with its key: its content is unknown.
    """
    secrets: set[str] = set()
    shown = _shown(value, (), unknown, secrets)
    return Redacted(value=shown, secrets=frozenset(secrets - {""}))


def scrubbed(text: str, secrets: Iterable[str]) -> str:
    """Return a text without the secrets, the longest first: one may be a part of another."""
    spellings = {form for each in secrets if len(each) >= SHORTEST for form in _spellings(each)}
    for each in sorted(spellings, key=len, reverse=True):
        text = text.replace(each, HIDDEN)
    return text


def _spellings(secret: str) -> Iterator[str]:
    """Yield a secret as it is, and as JSON and our messages write it."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield printable(secret)


def _shown(value: object, path: Path, unknown: frozenset[Path], secrets: set[str]) -> object:
    if path in unknown or _is_hidden(path):
        secrets.update(_leaves(value) if _is_hidden(path) else ())
        return value if value in (None, "") else HIDDEN
    match value:
        case dict():
            return {
                HIDDEN if (*path, key) in unknown else key: _shown(each, (*path, key), unknown, secrets)
                for key, each in value.items()
            }
        case list() | tuple() if path and path[-1] in _COMMANDS:
            secrets.update(_long(_leaves(value[1:])))
            return [*value[:1], *(HIDDEN for _ in value[1:])]
        case list() | tuple():
            return [_shown(each, (*path, at), unknown, secrets) for at, each in enumerate(value)]
        case str():
            return _text(value, path, secrets)
    return value


def _is_hidden(path: Path) -> bool:
    return bool(path) and path[-1] not in _FILES and not _KEYS.isdisjoint(path)


def _leaves(value: object) -> Iterator[str]:
    """Yield every text and number: a value at a wrong place may be a secret nevertheless."""
    match value:
        case dict():
            for each in value.values():
                yield from _leaves(each)
        case list() | tuple():
            for each in value:
                yield from _leaves(each)
        case str() | int() | float() if not isinstance(value, bool):
            yield str(value)


def _long(texts: Iterable[str]) -> Iterator[str]:
    """Yield those that may be looked for elsewhere: `active` is an argument, and a word of every status."""
    return (each for each in texts if len(each) >= _WORD)


def _text(value: str, path: Path, secrets: set[str]) -> str:
    if path and path[-1] in _COMMANDS:
        program, _, rest = value.partition(" ")
        secrets.update(_long(rest.split()))
        return f"{program} {HIDDEN}" if rest else program
    if "://" in value:
        return _address(value, secrets, is_secret=not _URLS.isdisjoint(path))
    return _without_query(value, secrets) if value.startswith("/") else value


def _address(value: str, secrets: set[str], *, is_secret: bool) -> str:
    """Return a URL without its user, password and query; of a webhook only the host.

    A password may contain a "?" that should have been "%3F": everything before an "@" is hidden.
    """
    scheme, _, rest = value.partition("://")
    user, at, _ = rest.partition("/")[0].rpartition("@")
    rest = rest[len(user + at) :]
    host = re.split("[/?#]", rest, maxsplit=1)[0]  # RFC 3986 s.3.2: a path, a query or a fragment ends it
    path = rest[len(host) :]
    if user:
        secrets.update((user, *user.split(":")[1:]))
    shown = _without_all(path, secrets) if is_secret else _without_query(path, secrets)
    return f"{scheme}://{HIDDEN + at if at else ''}{host}{shown}"


def _without_all(path: str, secrets: set[str]) -> str:
    """Return only the first character of a path with its query."""
    secrets.update(_long((path[1:], *re.split("[/?#&=]", path))))
    return f"{path[0]}{HIDDEN}" if path[1:] else path


def _without_query(path: str, secrets: set[str]) -> str:
    """Return a path without its query or fragment."""
    found = re.search("[?#]", path)
    if found is None:
        return path
    query = path[found.end() :]
    secrets.update(_long((query, *(each.partition("=")[2] for each in query.split("&")))))
    return path[: found.end()] + (HIDDEN if query else "")
