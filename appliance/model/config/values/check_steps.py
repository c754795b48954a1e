"""The steps of a check that sends data: a list of mappings, each of which sends, expects, or does both.

Messages name keys but never show the data, which may be a password.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from appliance.model.byte_pattern import LONGEST as LONGEST_PATTERN
from appliance.model.byte_pattern import byte_pattern
from appliance.model.config.values.mappings import mappings
from appliance.model.snapshot.pools import CheckStep

MOST_STEPS: Final = 32
LONGEST_TEXT: Final = 1024
"""Maximum bytes to send or expect."""

MOST_RECEIVED: Final = 16_384
"""Maximum of `min_recv`: bytes of an answer that are examined."""

LONGEST_COMMENT: Final = 60

_BINARY: Final = re.compile(r"(?:[0-9A-Fa-f]{2})+", re.ASCII)


def check_steps(value: object) -> tuple[CheckStep, ...]:
    """Return the steps of a list; raises ValueError with the number of the step that is wrong."""
    return mappings(
        value, _step, noun="step", most=MOST_STEPS, keys=_READERS, example="{send: ..., expect: ...}"
    )


def _step(value: Mapping[str, object]) -> CheckStep:
    read = {key: _READERS[key](key, each) for key, each in value.items()}
    found = CheckStep(**read)  # type: ignore[arg-type]  # each reader returns what its key takes
    _one_of(value, "send", "send_binary")
    expected = _one_of(value, "expect", "expect_binary", "expect_rstring")
    if not expected and not found.send and not found.send_binary:
        raise ValueError("must `send` something, `expect` something, or both")
    for key in ("negate", "min_recv"):
        if key in value and not expected:
            raise ValueError(f"`{key}` means nothing without `expect`")
    return found


def _one_of(value: Mapping[str, object], *keys: str) -> bool:
    """Return whether one of the keys is set; several are an error."""
    said = [key for key in keys if key in value]
    if len(said) > 1:
        raise ValueError(f"has `{said[0]}` and `{said[1]}`: leave one of them out, or make two steps of it")
    return bool(said)


def _text(key: str, value: object) -> str:
    if not isinstance(value, str) or not 1 <= len(value.encode(errors="replace")) <= LONGEST_TEXT:
        raise ValueError(f"`{key}` must be a text of 1 to {LONGEST_TEXT} bytes, in quotes if need be")
    return value


def binary(key: str, value: object) -> str:
    """Return bytes as hexadecimal digits."""
    text = value if isinstance(value, str) else ""
    if not _BINARY.fullmatch(text) or len(text) > 2 * LONGEST_TEXT:
        raise ValueError(f'`{key}` must be pairs of hexadecimal digits in quotes, such as `"50494e47"`')
    return text


def _rstring(key: str, value: object) -> str:
    text = value if isinstance(value, str) else ""
    try:
        byte_pattern(text)
    except ValueError as error:
        raise ValueError(f"`{key}`: {error}") from None
    return text


def _negate(key: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError(f"`{key}` must be `true` or `false`")


def _min_recv(key: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_RECEIVED:
        raise ValueError(f"`{key}` must be a number from 1 to {MOST_RECEIVED}")
    return value


def _comment(key: str, value: object) -> str:
    if not isinstance(value, str) or not value.isprintable() or not 1 <= len(value) <= LONGEST_COMMENT:
        raise ValueError(f"`{key}` must be a text of 1 to {LONGEST_COMMENT} characters on one line")
    return value


_READERS: Final[Mapping[str, Callable[[str, object], str | int]]] = {
    "send": _text,
    "send_binary": binary,
    "expect": _text,
    "expect_binary": binary,
    "expect_rstring": _rstring,
    "negate": _negate,
    "min_recv": _min_recv,
    "comment": _comment,
}

_TEXT_SCHEMA: Final = {"type": "string", "minLength": 1, "maxLength": LONGEST_TEXT}
_BINARY_SCHEMA: Final = {"type": "string", "pattern": "^([0-9A-Fa-f]{2})+$", "maxLength": 2 * LONGEST_TEXT}

SCHEMA: Final = {
    "type": "array",
    "minItems": 1,
    "maxItems": MOST_STEPS,
    "items": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "send": {**_TEXT_SCHEMA, "description": "Text to send (tcp-check send)."},
            "send_binary": {
                **_BINARY_SCHEMA,
                "description": "Bytes to send, in hexadecimal digits (tcp-check send-binary).",
            },
            "expect": {
                **_TEXT_SCHEMA,
                "description": "Text that the answer must contain (tcp-check expect string).",
            },
            "expect_binary": {
                **_BINARY_SCHEMA,
                "description": "Bytes that it must contain, in hexadecimal digits (tcp-check expect binary).",
            },
            "expect_rstring": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_PATTERN,
                "description": "Regular expression that must match in it (tcp-check expect rstring).",
            },
            "negate": {
                "type": "boolean",
                "default": False,
                "description": "The answer must not contain it (HAProxy's !).",
            },
            "min_recv": {
                "type": "integer",
                "minimum": 1,
                "maximum": MOST_RECEIVED,
                "description": "Bytes after which the check stops waiting for more (min-recv).",
            },
            "comment": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_COMMENT,
                "description": "Purpose of the step, shown if it fails (comment).",
            },
        },
    },
}
"""The schema for editors."""
