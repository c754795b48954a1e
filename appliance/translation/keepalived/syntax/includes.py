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

_BRACES: Final = re.compile(r"([^{}]*)\{([^{}]*)\}(.*)", re.DOTALL)
_WILD: Final = re.compile(r"[*?\[]")


def included(pattern: str, *, source: str, matching: Callable[[str], Sequence[str]]) -> list[str]:
    """Return the files that a pattern in the file `source` means, in keepalived's order."""
    found: list[str] = []
    for each in alternatives(pattern):
        path = posixpath.join(posixpath.dirname(source), each)
        found += sorted(matching(path)) if _WILD.search(path) else [path]
    return [each for each in dict.fromkeys(found) if not each.endswith("/")]


def is_wild(pattern: str) -> bool:
    """Tell whether a pattern may well match nothing."""
    return _WILD.search(pattern) is not None


def alternatives(pattern: str) -> list[str]:
    """Return the patterns that one with braces stands for, innermost braces first; at most 100."""
    done: list[str] = []
    open_ones = [pattern]
    while open_ones and len(done) + len(open_ones) <= MOST_ALTERNATIVES:
        each = open_ones.pop(0)
        match = _BRACES.search(each)
        if match is None:
            done.append(each)
            continue
        before, middle, after = each[: match.start(2) - 1], match[2], match[3]
        open_ones[:0] = [before + choice + after for choice in middle.split(",")]
    return done
