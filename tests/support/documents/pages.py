"""The pages that people read, and what stands in their blocks of code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
DOCS: Final = ROOT / "docs"

_OUTSIDE: Final = ("README.md", "image/README.md", "image/monitoring/README.md", "bench/README.md")
_BLOCK: Final = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of code: its page, its line there, its language and its text."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def page(name: str) -> str:
    """Return the text of a page of docs/, by its name without `.md`."""
    return (DOCS / f"{name}.md").read_text()


def pages() -> tuple[Path, ...]:
    """Return every page for operators: those of docs/, README.md and those of image/ and bench/."""
    outside = (ROOT / name for name in _OUTSIDE)
    return (*outside, *sorted(DOCS.rglob("*.md")))


def name_of(path: Path) -> str:
    """Return a page's name: its path in the repository."""
    return str(path.relative_to(ROOT))


def blocks(path: Path, *languages: str) -> Iterator[Block]:
    """Yield a page's blocks of these languages, or all."""
    text = path.read_text()
    for found in _BLOCK.finditer(text):
        indent, language, body = found.groups()
        if not languages or language in languages:
            line = text.count("\n", 0, found.start()) + 1
            unindented = re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
            yield Block(page=name_of(path), line=line, language=language, text=unindented)


def yaml_blocks(name: str) -> list[str]:
    """Return the blocks of YAML of a page of docs/, in their order."""
    return [block.text for block in blocks(DOCS / f"{name}.md", "yaml")]
