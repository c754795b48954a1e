"""Walks: the commands of a page in their order, each with the machine on which it is typed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from support.documents.pages import DOCS, blocks

_TYPED: Final = re.compile(r"^([\w-]*)[$#] ((?:.*\\\n)*.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command, and the machine: "" is the reader's own."""

    machine: str
    command: str
    heading: str

    def __str__(self) -> str:
        return f"{self.heading}: {self.machine} {self.command}"


def walk(name: str) -> Iterator[Step]:
    """Yield the steps of a page of docs/; what follows `  # ` on a line is for the reader."""
    path = DOCS / f"{name}.md"
    lines = path.read_text().split("\n")
    for block in blocks(path, "console"):
        heading = next(line for line in reversed(lines[: block.line]) if line.startswith("## ")).strip("# ")
        for machine, command in _TYPED.findall(block.text):
            yield Step(machine=machine, command=re.sub(r" +# .*$", "", command), heading=heading)
