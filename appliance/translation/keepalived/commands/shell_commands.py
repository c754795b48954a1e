"""The simple commands of a shell script in order, each with its keywords and the operator after it.

This is no shell: it separates words from operators, so that a caller can decide for each command whether it
knows it. Anything it does not understand comes out as an unknown command.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

LONGEST_SCRIPT: Final = 8192
"""Characters; longer scripts are not read."""

CONNECTION: Final = "/dev/tcp/"
"""Path by which bash connects; a redirection from it counts as a command here."""

_TOKEN: Final = re.compile(
    r"""
    (?P<joined>\\\n)
  | (?P<connection>[<>]{1,2}\s*/dev/tcp/[^\s/;|&()"'`]+/[^\s;|&()"'`]+)
  | (?P<redirection>[0-9]?>&[0-9-]|(?:&>>?|[0-9]?>>?|[0-9]?<)\s*[^\s;|&()<>]+)
  | (?P<comment>(?:(?<=[\s;(|&])|^)\#[^\n]*)
  | (?P<literal>'[^']*'|"(?:[^"\\`$]|\\.|\$(?!\())*"|\$\{[^{}\n]*\}|\$\(\([^()\n]*\)\)|\\.)
  | (?P<joint>\$\(|`|&&|\|\||;;|[;&|()\n])
    """,
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS: Final = frozenset(
    ("if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "!", "time", "esac")
)
ASSIGNMENT: Final = re.compile(
    r"""(?:(?:export|local|readonly)\s+)?([A-Za-z_][A-Za-z0-9_]*)=("[^"]*"|'[^']*'|\S*)"""
)
_VARIABLE: Final = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_PLAIN: Final = re.compile(r"[A-Za-z0-9._:/%@+ -]{0,255}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellCommand:
    """One simple command. `keywords` precede it, `behind` is the operator that joins it to the next one.

    `inner`: its output is captured, by `$(...)` or backticks. `continues`: this is the rest of a command
    after such a captured output.
    """

    text: str
    keywords: tuple[str, ...] = ()
    behind: str = "\n"
    inner: bool = False
    continues: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """Its words, without quotes; for an exact match use `text`."""
        return tuple(self.text.replace('"', " ").replace("'", " ").split())

    @property
    def program(self) -> str:
        """The name of its program, without a directory."""
        return self.words[0].rpartition("/")[2] if self.words else ""


def shell_commands(text: str) -> tuple[ShellCommand, ...]:
    """Return a script's commands with variables of plain text replaced, without assignments."""
    variables: dict[str, str] = {}
    found: list[ShellCommand] = []
    for each in _pieces(text[:LONGEST_SCRIPT]):
        assigned = ASSIGNMENT.fullmatch(each.text)
        value = assigned[2].strip("\"'") if assigned else ""
        if assigned and _PLAIN.fullmatch(value):
            variables[assigned[1]] = value
            if not each.keywords:
                continue
        found.append(replace(each, text=_replaced(each.text, variables)))
    return tuple(found)


def _pieces(text: str) -> Iterator[ShellCommand]:
    """Yield the text between operators."""
    nesting: list[str] = []
    keywords: tuple[str, ...] = ()
    piece = ""
    continues = False
    for kind, token in _tokens(text):
        if kind == "connection":
            piece += f" {token.lstrip('<> ')} "
        elif kind != "joint":
            piece += token if kind in ("literal", "character") else " "
        else:
            keywords, bare = _split_keywords(piece, keywords)
            if bare:
                inner = any(each != "(" for each in nesting)
                yield ShellCommand(
                    text=bare, keywords=keywords, behind=token, inner=inner, continues=continues
                )
                keywords = ()
            piece, continues = "", _nest(nesting, token)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield the tokens of a script, each with its kind; a line ends after the last one."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        yield (match.lastgroup or "", match[0]) if match else ("character", text[at])
        at = match.end() if match else at + 1
    yield "joint", "\n"


def _nest(nesting: list[str], joint: str) -> bool:
    """Note what an operator opens or closes; return whether it ends captured output within a command."""
    if joint in ("$(", "(") or (joint == "`" and "`" not in nesting):
        nesting.append(joint)
        return False
    if joint == "`":
        del nesting[nesting.index("`") :]
        return True
    return joint == ")" and bool(nesting) and nesting[-1] != "`" and nesting.pop() == "$("


def _split_keywords(piece: str, before: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Return the keywords at the start of a piece, after those that stood alone, and the rest."""
    found = [*before]
    rest = piece.strip()
    while rest:
        word, _, behind = rest.partition(" ") if " " in rest else rest.partition("\t")
        if word not in _KEYWORDS:
            break
        found.append(word)
        rest = behind.strip()
    return tuple(found), rest


def _replaced(text: str, variables: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: variables.get(match[1] or match[2], match[0]), text)
