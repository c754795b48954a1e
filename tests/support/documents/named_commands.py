"""Commands of ours that sentences name: in pages, log events, messages and help.

A sentence may name a command without its arguments (`appliance drain`), show choices (`drain|maint`) and what
may be left out (`[--wait]`), and has words in capitals for names. What it may not: name a command, an option
or a form that the appliance's own parser does not take.
"""

import ast
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Final

from support.documents.command_lines import complaint, ours

_CODE: Final = re.compile(r"`(?:[\w-]*[$#] )?((?:sudo )?[\w./-]*\bappliance\s[a-z][^`]*)`")
_FENCED: Final = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_LAST: Final = re.compile(r"(?<!Example): (appliance [a-z].*?)(?=[.,;] |$)", re.MULTILINE)
_CHOICE: Final = re.compile(r"(?<=\S)\|(?=\S)")
_FILLED: Final = {"N": "1", "N%": "1%", "...": ""}
_LEFT_OUT: Final = re.compile(r"^(Missing argument|Missing option|Option .* requires an argument)")
"""What a sentence may leave out, as it names a command and does not have it typed."""


def of_page(text: str) -> Iterator[str]:
    """Yield the commands that the sentences of a page name; its blocks are typed, and read elsewhere."""
    yield from _CODE.findall(_FENCED.sub("", text))


def of_source(path: Path) -> Iterator[str]:
    """Yield the commands that the strings of a module name, `x` for what it fills in."""
    tree = ast.parse(path.read_text())
    if ast.get_docstring(tree):
        del tree.body[0]  # what a module is about, for who reads the code
    parts = {id(each) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for each in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "command" and id(node.value) not in parts:
            yield from (text for text in _texts(node.value) if text.startswith("appliance "))
        if isinstance(node, ast.expr) and id(node) not in parts:
            for text in _texts(node):
                yield from of_text(text)


def of_text(text: str) -> Iterator[str]:
    """Yield the commands that a message names: in backticks, or behind its last colon."""
    yield from _CODE.findall(text)
    if "`" not in text:
        yield from _LAST.findall(text)


def wrong_in(command: str) -> str | None:
    """Return what the parser has against a command that a sentence names, None where it takes each form."""
    for form in _forms(command):
        for arguments in ours(form):
            said = complaint(arguments)
            if said is not None and not _LEFT_OUT.match(said):
                return f"{command}: {said}"
    return None


def _forms(command: str) -> Iterator[str]:
    """Yield a command once for each combination of its choices, with all that may be left out."""
    words = re.sub(r"[\[\]]", "", command).split()
    choices = [[_FILLED.get(each, each) for each in _CHOICE.split(word)] for word in words]
    for chosen in product(*choices):
        yield " ".join(chosen)


def _texts(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str() as text):
            yield text
        case ast.JoinedStr():
            yield "".join(str(each.value) if isinstance(each, ast.Constant) else "x" for each in node.values)
