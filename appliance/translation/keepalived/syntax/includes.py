"""Which files an `include` means.

A relative pattern begins in the directory of the file that has it, and braces are alternatives, as in a shell
(keepalived.conf(5), `include`).
"""

import posixpath
import re
from collections.abc import Callable, Sequence
from typing import Final

INCLUDES: Final = frozenset(("include", "includea", "includeb", "includem", "includer", "includew"))
"""The keywords; the longer ones say what is an error (`include_check`)."""

MOST_ALTERNATIVES: Final = 100

_WILD: Final = re.compile(r"[*?\[]")


def included(pattern: str, *, source: str, matching: Callable[[str], Sequence[str]]) -> list[str]:
    """Return the files that a pattern in the file `source` means, in keepalived's order."""
    found: list[str] = []
    for each in alternatives(pattern):
        path = posixpath.join(posixpath.dirname(source), each)
        found += sorted(matching(path)) if _WILD.search(path) else [path]
    return [each for each in dict.fromkeys(found) if not each.endswith("/")]


def alternatives(pattern: str) -> list[str]:
    """Return the patterns that one with braces stands for, in the order of glob(3); at most 100."""
    done: list[str] = []
    waiting = [pattern]
    while waiting and len(done) + len(waiting) <= MOST_ALTERNATIVES:
        each = waiting.pop(0)
        braces = _first_braces(each)
        if braces is None:
            done.append(each)
        else:
            waiting[:0] = braces
    return done


def _first_braces(pattern: str) -> list[str] | None:
    """Return the pattern with each choice of its first braces in their place, None without braces."""
    first = pattern.find("{")
    choices = [""]
    depth = 0
    for at, character in enumerate(pattern[first:], first):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            after = pattern[at + 1 :]
            return [pattern[:first] + each + after for each in choices] if first >= 0 else None
        if depth == 1 and character == ",":
            choices.append("")
        elif at > first:
            choices[-1] += character
    return None
