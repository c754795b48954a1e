"""The whole screen as lines of styled texts, for any size of terminal; drawing it requires no logic."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Final

from appliance.core.status.headline import Level, headline
from appliance.core.top.columns import widths
from appliance.core.top.keys import Mode, help_lines
from appliance.core.top.navigation import ScreenState, Shown, selected
from appliance.core.top.rates import Sample, summed
from appliance.core.top.tables import (
    Cell,
    Order,
    Row,
    Style,
    Table,
    filtered,
    ordered,
    rate_text,
    size_text,
)
from appliance.core.top.traffic import error_rate
from appliance.core.top.views import View, table
from appliance.model.messages.quoting import printable

_STYLES: Final = {Level.OK: Style.GOOD, Level.ATTENTION: Style.WARNING, Level.CRITICAL: Style.BAD}

LEAST_WIDTH: Final = 20
LEAST_HEIGHT: Final = 4
_GAP: Final = "  "
_HINT: Final = "q quit  ? help  tab view  enter open  w why  / filter  <> sort  r turn  p pause"
_TEXT_HINT: Final = "escape back  up, down scroll  q quit"


def title(sample: Sample, *, moment: Callable[[float], str]) -> str:
    """Return the subject and the time of the look."""
    status = sample.status
    name = f"{status.cluster}  " if status.cluster else ""
    number = f"configuration {status.configuration}" if status.configuration else "no configuration"
    return printable(f"appliance top  {name}{number}  {moment(status.at)}")


def serves(sample: Sample, *, moment: Callable[[float], str]) -> tuple[str, Style]:
    """Return the sentences on whether it serves, as on the status page."""
    said = headline(sample.status, moment=moment)
    return printable(said.text), _STYLES[said.level]


def totals(sample: Sample) -> str:
    """Return the sums over all frontends and servers."""
    status = sample.status

    def per_second(name: str) -> float | None:
        return summed(sample.rates.of("frontend", each.program, each.name, name) for each in status.frontends)

    queued = sum(pool.queued for pool in status.pools)
    parts = (
        f"sessions {sum(each.current for each in status.frontends)}",
        f"new/s {rate_text(per_second('total'))}",
        f"errors/s {rate_text(error_rate(sample))}",
        f"queue {queued}",
        f"in/s {size_text(per_second('bytes_in'))}",
        f"out/s {size_text(per_second('bytes_out'))}",
        f"denied/s {rate_text(per_second('denied'))}",
    )
    return "  ".join(parts)


def virtual_ips(sample: Sample) -> str:
    """Return the holder of each virtual IP; nothing if there are none."""
    said = []
    for each in sample.status.virtual_ips:
        peer = f" ({each.active_peer} is active)" if each.active_peer and not each.active else ""
        said.append(f"{each.name} {each.state or 'unknown'}{peer}")
    return printable(f"vips: {', '.join(said)}") if said else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A text in one style."""

    text: str
    style: Style = Style.PLAIN


Line = tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Glyphs:
    """The few signs that not every terminal has."""

    down: str
    up: str
    cut: str
    encodable: Callable[[str], bool]


_SIGNS: Final = frozenset("\u2193\u2191\u2026")


def _any(letter: str) -> bool:
    # One column wide: wide and combining letters would move the rest of the line.
    return (letter < "\u0300" and letter.isprintable()) or letter in _SIGNS


ASCII: Final = Glyphs(down="v", up="^", cut="~", encodable=lambda each: each.isascii() and each.isprintable())
UNICODE: Final = Glyphs(down="\u2193", up="\u2191", cut="\u2026", encodable=_any)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """The terminal to draw on."""

    width: int
    height: int
    glyphs: Glyphs = ASCII


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What to show: the last look, None before it, and the state of the screen.

    `explain` returns the lines about a row of a view; `moment` writes a time (Unix seconds).
    """

    sample: Sample | None
    state: ScreenState
    explain: Callable[[View, str], Sequence[str]]
    moment: Callable[[float], str]


def lines(scene: Scene, terminal: Terminal) -> tuple[Line, ...]:
    """Return the lines of the screen: as many as the terminal has, none wider than it."""
    if terminal.width < LEAST_WIDTH or terminal.height < LEAST_HEIGHT:
        made: list[Line] = [(Span(text="too small"),)]
    elif scene.sample is None:
        made = [(Span(text="appliance top: looking ..."),)]
    else:
        made = _screen(scene, scene.sample, terminal)
    blank: list[Line] = [()] * max(0, terminal.height - len(made))
    return tuple(_fitted(line, terminal) for line in (*made, *blank)[: terminal.height])


def shown(scene: Scene, terminal: Terminal) -> Shown:
    """Return what keys refer to."""
    if scene.sample is None:
        return Shown()
    seen, rows = _rows(scene.sample, scene.state)
    room = terminal.height - len(_above(scene, scene.sample, terminal)) - 1
    if scene.state.mode is Mode.TEXT:
        return Shown(page=max(1, room), lines=len(_text(scene, terminal)))
    return Shown(
        rows=tuple(row.key for row in rows),
        pools={row.key: row.pool for row in rows if row.pool},
        columns=tuple(each.name for each in seen.columns),
        page=max(1, room - 1),
    )


def report(scene: Scene, sample: Sample, views: Sequence[View], width: int) -> Iterator[Line]:
    """Yield the lines of a report: the head, and each of some views in full."""
    wide = Terminal(width=width, height=1)
    yield from (_fitted(line, wide) for line in _head(scene, sample))
    for view in views:
        place = replace(scene.state.place, view=view)
        seen, rows = _rows(sample, replace(scene.state, place=place))
        if seen.rows:
            yield ()
            yield from (_fitted(line, wide) for line in _table(seen, rows, scene.state.order, wide, None))


def _screen(scene: Scene, sample: Sample, terminal: Terminal) -> list[Line]:
    head = _above(scene, sample, terminal)
    room = terminal.height - len(head) - 1
    if scene.state.mode is Mode.TEXT:
        text = _text(scene, terminal)[scene.state.first_line :]
        body: list[Line] = [(Span(text=each),) for each in text[:room]]
        hint = _TEXT_HINT
    else:
        seen, rows = _rows(sample, scene.state)
        position = selected(scene.state, tuple(row.key for row in rows))
        first = max(0, position - (room - 1) + 1)
        page = rows[first : first + room - 1]
        body = list(_table(seen, page, scene.state.order, terminal, position - first))
        hint = _HINT
    body += [()] * (room - len(body))
    return [*head, *body, _bottom(scene.state, hint)]


def _above(scene: Scene, sample: Sample, terminal: Terminal) -> list[Line]:
    """Return the lines above the table, most of which a low terminal omits."""
    views = [] if scene.state.mode is Mode.TEXT else [_views(scene.state)]
    return [*_head(scene, sample), *views][: max(1, terminal.height - LEAST_HEIGHT)]


def _head(scene: Scene, sample: Sample) -> list[Line]:
    words, style = serves(sample, moment=scene.moment)
    stands = (Span(text="  PAUSED", style=Style.WARNING),) if scene.state.paused else ()
    made: list[Line] = [
        (Span(text=title(sample, moment=scene.moment), style=Style.STRONG), *stands),
        (Span(text=words, style=style),),
        (Span(text=totals(sample)),),
    ]
    if said := virtual_ips(sample):
        made.append((Span(text=said),))
    return made


def _views(state: ScreenState) -> Line:
    spans = []
    for number, view in enumerate(View, start=1):
        here = view is state.view
        of_pool = f" of {state.place.pool}" if here and state.place.pool else ""
        text = f"[{number} {view}{of_pool}] " if here else f"{number} {view} "
        spans.append(Span(text=text, style=Style.STRONG if here else Style.FAINT))
    return tuple(spans)


def _bottom(state: ScreenState, hint: str) -> Line:
    if state.mode is Mode.FILTER:
        return (Span(text=f"filter: {state.typed}_  (enter keeps it, escape leaves it)", style=Style.STRONG),)
    if state.mode is Mode.LIST and state.filter:
        return (Span(text=f"filter: {state.filter}", style=Style.WARNING), Span(text=f"  {hint}"))
    return (Span(text=hint, style=Style.FAINT),)


def _text(scene: Scene, terminal: Terminal) -> list[str]:
    about = scene.state.about
    lines = help_lines() if about is None else scene.explain(scene.state.view, about)
    folded: list[str] = []
    for each in lines:
        indent = " " * (len(each) - len(each.lstrip()))
        folded += wrap(each, terminal.width, subsequent_indent=f"{indent}  ") or [""]
    return folded


def _rows(sample: Sample, state: ScreenState) -> tuple[Table, tuple[Row, ...]]:
    seen = table(state.view, sample, pool=state.place.pool)
    return seen, ordered(seen, filtered(seen.rows, state.words), state.order)


def _table(
    seen: Table, rows: Sequence[Row], order: Order, terminal: Terminal, at: int | None
) -> Iterator[Line]:
    sizes = widths(seen, rows, terminal.width, order)
    titles = tuple(
        Cell(
            text=each.title + _mark(each.name, order, number=each.number, glyphs=terminal.glyphs), value=None
        )
        for each in seen.columns
    )
    yield tuple(replace(span, style=Style.FAINT) for span in _cells(seen, titles, sizes, terminal.glyphs))
    for position, row in enumerate(rows):
        spans = tuple(_cells(seen, row.cells, sizes, terminal.glyphs))
        if position == at:
            whole = "".join(span.text for span in spans).ljust(terminal.width)
            spans = (Span(text=whole, style=Style.SELECTED),)
        yield spans


def _mark(name: str, order: Order, *, number: bool, glyphs: Glyphs) -> str:
    if name != order.column:
        return ""
    return glyphs.down if number is not order.reverse else glyphs.up


def _cells(seen: Table, cells: Sequence[Cell], sizes: Sequence[int], glyphs: Glyphs) -> Iterator[Span]:
    gap = ""
    for column, cell, size in zip(seen.columns, cells, sizes, strict=True):
        if not size:
            continue
        text = _cut(cell.text, size, glyphs) if gap else _cut_front(cell.text, size, glyphs)
        padded = text.rjust(size) if column.number else text.ljust(size)
        yield Span(text=f"{gap}{padded}", style=cell.style)
        gap = _GAP


def _cut_front(text: str, size: int, glyphs: Glyphs) -> str:
    """Cut a name at the front, as its end distinguishes it."""
    return text if len(text) <= size else glyphs.cut + text[len(text) - size + 1 :]


def _cut(text: str, size: int, glyphs: Glyphs) -> str:
    return text if len(text) <= size else text[: size - 1] + glyphs.cut


def _fitted(line: Line, terminal: Terminal) -> Line:
    """Return a line that is not wider than the terminal, with its characters only."""
    spans: list[Span] = []
    left = terminal.width
    for span in line:
        text = "".join(each if terminal.glyphs.encodable(each) else "?" for each in span.text)
        spans.append(replace(span, text=text[:left]))
        left -= len(text[:left])
    return tuple(span for span in spans if span.text)
