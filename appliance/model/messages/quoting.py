"""How messages quote values of a file: short, on one line, and without control sequences for a terminal."""

import re
from typing import Final

_SHOWN: Final = 60


def shown(value: object) -> str:
    """Return a value of the file as a message quotes it: short, and by its YAML spelling."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"`{str(value).lower()}`"
        case dict():
            return "a mapping"
        case list():
            return "a list"
    text = str(value)
    return f"`{printable(text) if len(text) <= _SHOWN else printable(text[:_SHOWN]) + '...'}`"


def printable(text: str) -> str:
    r"""Return a text with Python's escapes (`\n`, `\x1b`) in place of characters that cannot be printed.

    Line breaks would look like lines of ours, and a terminal executes escape sequences.
    """
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text
    )


def masked(text: str, mask: str) -> str:
    """Return a text with `mask` for every character that cannot be printed, so its length stays."""
    return "".join(each if each.isprintable() else mask for each in text)


def contrast(value: object, *, plain: str) -> str:
    """Return the end of a message that began with the expected value.

    A text that matches the pattern `plain` would be right without its quotes, and the message adds that.
    """
    if isinstance(value, str) and re.fullmatch(plain, value):
        return f": `{value}` without the quotes, which make it text"
    return f", not {shown(value)}"
