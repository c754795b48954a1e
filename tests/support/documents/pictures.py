"""Pictures of the documentation: SVG, drawn from text in which lines are drawn by box characters.

The first line of a file is the title, which a screen reader says; what comes after an empty line is
the picture. A cell of the text is a cell of the picture, so the text can be read as it stands. `█`
and `▓` are bars in two colours; `┄` and `┆` are dashed. Colours follow what the reader's machine
prefers, dark or light, and the background is part of the picture: it is readable on a page of
either kind.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Final

PICTURES: Final = Path(__file__).parents[3] / "docs" / "pictures"

_NAMESPACE: Final = "http://www.w3.org/2000/svg"
_WIDTH: Final = 8.4
_HEIGHT: Final = 18
_MARGIN: Final = 12
_BASELINE: Final = 0.72
"""Of a cell's height, from its top."""

_STYLE: Final = """
  rect.page { fill: #ffffff }
  text { fill: #1f2328; font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace }
  path { stroke: #59636e; stroke-width: 1.4; fill: none }
  path.dashed { stroke-dasharray: 4 4 }
  polygon { fill: #59636e }
  rect.first { fill: #2f7bd9 }
  rect.second { fill: #d9822f }
  @media (prefers-color-scheme: dark) {
    rect.page { fill: #15191f }
    text { fill: #e6edf3 }
    path { stroke: #9aa4af }
    polygon { fill: #9aa4af }
    rect.first { fill: #62a4f0 }
    rect.second { fill: #f0a860 }
  }
"""

_UP, _DOWN, _LEFT, _RIGHT = (0.5, 0.0), (0.5, 1.0), (0.0, 0.5), (1.0, 0.5)
_ENDS: Final = {
    "─": (_LEFT, _RIGHT),
    "│": (_UP, _DOWN),
    "┌": (_RIGHT, _DOWN),
    "┐": (_LEFT, _DOWN),
    "└": (_RIGHT, _UP),
    "┘": (_LEFT, _UP),
    "├": (_UP, _DOWN, _RIGHT),
    "┤": (_UP, _DOWN, _LEFT),
    "┬": (_LEFT, _RIGHT, _DOWN),
    "┴": (_LEFT, _RIGHT, _UP),
    "┼": (_UP, _DOWN, _LEFT, _RIGHT),
    "┄": (_LEFT, _RIGHT),
    "┆": (_UP, _DOWN),
}
"""To which middles of its cell's edges a character draws, from the middle of the cell."""

_HEADS: Final = {
    "▶": ((0.0, 0.25), (1.0, 0.5), (0.0, 0.75)),
    "◀": ((1.0, 0.25), (0.0, 0.5), (1.0, 0.75)),
    "▲": ((0.0, 1.0), (0.5, 0.3), (1.0, 1.0)),
    "▼": ((0.0, 0.0), (0.5, 0.7), (1.0, 0.0)),
}
_BARS: Final = {"█": "first", "▓": "second"}
_DASHED: Final = "┄┆"
_DRAWN: Final = frozenset((*_ENDS, *_HEADS, *_BARS))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Neighbouring cells of one kind: equal characters that are drawn, or a piece of text."""

    row: int
    column: int
    text: str

    @property
    def left(self) -> float:
        return _MARGIN + self.column * _WIDTH

    @property
    def top(self) -> float:
        return _MARGIN + self.row * _HEIGHT

    @property
    def width(self) -> float:
        return len(self.text) * _WIDTH


def drawn(text: str) -> str:
    """Return the SVG of a picture; ValueError where the text has no title, or a tab."""
    title, empty, *rows = text.rstrip("\n").split("\n")
    if not title.strip() or empty.strip() or "\t" in text:
        raise ValueError("a picture is a title, an empty line, and lines without tabs")
    width = round(2 * _MARGIN + max(map(len, rows)) * _WIDTH)
    height = 2 * _MARGIN + len(rows) * _HEIGHT
    size, said = f'width="{width}" height="{height}"', escape(title.strip())
    parts = [
        f'<svg xmlns="{_NAMESPACE}" viewBox="0 0 {width} {height}" {size} role="img" aria-label="{said}">',
        f"<title>{said}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}" rx="6"/>',
        *(_shape(run) for number, row in enumerate(rows) for run in _runs(number, row)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _runs(number: int, row: str) -> Iterator[_Run]:
    column = 0
    for _, cells in groupby(_pieces(row), key=lambda piece: piece[0]):
        text = "".join(character for _, character in cells)
        if text.strip():
            start = column + len(text) - len(text.lstrip())
            yield _Run(row=number, column=start, text=text.strip())
        column += len(text)


def _pieces(row: str) -> Iterator[tuple[str, str]]:
    """Yield each character with what it belongs to; two spaces part pieces of text."""
    serial = 0
    for at, character in enumerate(row):
        if character in _DRAWN:
            yield character, character
            serial += 1
        else:
            yield f"text {serial}", character
            if row[at : at + 3].isspace() and len(row[at : at + 3]) > 1:
                serial += 1


def _shape(run: _Run) -> str:
    character = run.text[0]
    if character in _BARS:
        place = f'x="{run.left:.1f}" y="{run.top + 3:.1f}" width="{run.width:.1f}" height="{_HEIGHT - 6}"'
        return f'<rect class="{_BARS[character]}" {place}/>'
    if character in _HEADS:
        points = " ".join(
            f"{run.left + x * _WIDTH:.1f},{run.top + y * _HEIGHT:.1f}" for x, y in _HEADS[character]
        )
        return f'<polygon points="{points}"/>'
    if character in _ENDS:
        return _lines(run)
    baseline = run.top + _BASELINE * _HEIGHT
    length = f'textLength="{run.width:.1f}" lengthAdjust="spacingAndGlyphs"'
    return f'<text x="{run.left:.1f}" y="{baseline:.1f}" {length}>{escape(run.text)}</text>'


def _lines(run: _Run) -> str:
    middle = run.top + _HEIGHT / 2
    ends = _ENDS[run.text[0]]
    if ends == (_LEFT, _RIGHT):
        path = f"M{run.left:.1f} {middle:.1f}h{run.width:.1f}"
    else:
        path = "".join(
            f"M{run.left + (at + 0.5) * _WIDTH:.1f} {middle:.1f}"
            f"L{run.left + (at + x) * _WIDTH:.1f} {run.top + y * _HEIGHT:.1f}"
            for at in range(len(run.text))
            for x, y in ends
        )
    dashed = ' class="dashed"' if run.text[0] in _DASHED else ""
    return f'<path{dashed} d="{path}"/>'
