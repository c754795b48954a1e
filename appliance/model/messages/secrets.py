"""Keeps secrets of a configuration out of messages.

A message goes to logs, terminals and answers. A password at a wrong place, in a wrong type or as a key is
still a password.
"""

import re
from typing import Final

from appliance.model.messages.problems import Path
from appliance.model.messages.quoting import printable

KNOWN: Final = frozenset(
    (
        "anti_replay",
        "hmac",
        "keys",
        "mode",
        "pass",
        "password",
        "password_file",
        "send",
        "time_window",
        "user",
    )
)
"""Keys below `auth`, of virtual IPs and of the status page; anything else there may be a secret."""

PLACES: Final = frozenset(
    (
        *("accept", "auth", "auth_hmac", "auth_pass", "authentication", "hmac", "key", "keys", "pass"),
        *("password", "secret"),
    )
)
"""Keys at or below which a value may be a secret."""
_KEY_ID: Final = re.compile(r"[0-9]{1,3}", re.ASCII)
_QUOTED: Final = re.compile(r"`([^`]+)`")
_HIDDEN: Final = "***"


def is_secret(path: Path) -> bool:
    """Return whether the value at a path may be a secret."""
    return not PLACES.isdisjoint(path)


def without(message: str, value: object) -> str:
    """Return the message with `***` wherever it quotes the value or a part of it."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return message
    text = printable(str(value))
    return _QUOTED.sub(lambda found: _hidden(found, text), message)


def concealed(path: Path) -> Path:
    """Return the path with `***` for keys that may be secrets: someone may write one in place of a key."""
    first = next((at for at, step in enumerate(path) if step in PLACES), len(path))
    return path[: first + 1] + tuple(map(_step, path[first + 1 :]))


def _hidden(found: re.Match[str], text: str) -> str:
    quoted = found[1].removesuffix("...")
    return found[0] if quoted not in text or _is_known(quoted) else f"`{_HIDDEN}`"


def _step(step: str | int) -> str | int:
    return step if isinstance(step, int) or _is_known(step) else _HIDDEN


def _is_known(word: str) -> bool:
    return word in KNOWN | PLACES or _KEY_ID.fullmatch(word) is not None
