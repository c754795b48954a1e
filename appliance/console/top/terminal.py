"""The terminal, by curses, which supports every kind, from a vt100 to the console of Linux."""

import curses
import locale
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

import click

from appliance.core.top.layout import ASCII, UNICODE, Glyphs, Line, Terminal
from appliance.core.top.tables import Style

_ESCAPE_MS: Final = 100
"""Time after Escape in which the rest of a key's sequence may arrive, over a slow ssh."""

_NAMES: Final[Mapping[int | str, str]] = {
    curses.KEY_UP: "up",
    curses.KEY_DOWN: "down",
    curses.KEY_LEFT: "left",
    curses.KEY_RIGHT: "right",
    curses.KEY_PPAGE: "page-up",
    curses.KEY_NPAGE: "page-down",
    curses.KEY_HOME: "home",
    curses.KEY_END: "end",
    curses.KEY_ENTER: "enter",
    curses.KEY_BACKSPACE: "backspace",
    curses.KEY_BTAB: "back-tab",
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x1b": "escape",
    "\x7f": "backspace",
    "\b": "backspace",
}
_COLOURS: Final = {
    Style.GOOD: curses.COLOR_GREEN,
    Style.WARNING: curses.COLOR_YELLOW,
    Style.BAD: curses.COLOR_RED,
}
_ATTRIBUTES: Final = {
    Style.STRONG: curses.A_BOLD,
    Style.FAINT: curses.A_DIM,
    Style.WARNING: curses.A_BOLD,
    Style.BAD: curses.A_BOLD,
    Style.SELECTED: curses.A_REVERSE,
}


class Screen:
    """The whole terminal, as long as `opened` lasts."""

    def __init__(self, window: "curses.window", glyphs: Glyphs, attributes: Mapping[Style, int]) -> None:
        self._window = window
        self._glyphs = glyphs
        self._attributes = attributes

    @property
    def size(self) -> Terminal:
        """Return the size of the drawing area."""
        height, width = self._window.getmaxyx()
        return Terminal(width=width, height=height, glyphs=self._glyphs)

    def resized(self) -> None:
        """Apply the terminal's new size; LINES and COLUMNS of a shell would be those of its start."""
        with suppress(OSError):
            columns, lines = os.get_terminal_size(sys.stdout.fileno())
            curses.resizeterm(lines, columns)
        self._window.clear()

    def given_back(self) -> None:
        """Restore the terminal until the next `draw`."""
        curses.endwin()

    def draw(self, lines: tuple[Line, ...]) -> None:
        """Show these lines; only differences are transmitted."""
        self._window.erase()
        for row, line in enumerate(lines):
            column = 0
            for span in line:
                # curses moves the cursor behind what it writes, which in the last corner is impossible.
                with suppress(curses.error):
                    self._window.addstr(row, column, span.text, self._attributes.get(span.style, 0))
                column += len(span.text)
        self._window.refresh()

    def keys(self) -> Iterator[str]:
        """Yield the names of the keys pressed so far; a letter is its own name."""
        while True:
            try:
                pressed = self._window.get_wch()
            except curses.error:  # the way of curses to report that there is none
                return
            name = _NAMES.get(pressed) or (pressed if isinstance(pressed, str) else None)
            if name is not None:
                yield name


def require_terminal() -> None:
    """Raise UsageError without a terminal that can draw a screen."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("There is no terminal here. One look as text: appliance top --once")
    name = os.environ.get("TERM", "")
    try:
        curses.setupterm()
    except curses.error as error:
        raise click.UsageError(
            f"This machine does not know the terminal TERM={name or '(unset)'}. Try TERM=vt100, or: appliance"
            " top --once"
        ) from error
    if not curses.tigetstr("cup"):
        raise click.UsageError(
            f"The terminal TERM={name} cannot move its cursor. One look as text: appliance top --once"
        )


@contextmanager
def opened() -> Iterator[Screen]:
    """Take over the terminal, and restore it afterwards."""
    locale.setlocale(locale.LC_ALL, "")
    curses.set_escdelay(_ESCAPE_MS)
    window = curses.initscr()
    try:
        curses.noecho()
        curses.cbreak()
        with suppress(curses.error):  # a terminal that cannot hide it
            curses.curs_set(0)
        window.keypad(True)  # noqa: FBT003  # curses' signature
        window.nodelay(True)  # noqa: FBT003  # curses' signature
        screen = Screen(window, glyphs(), _attributes())
        screen.resized()
        yield screen
    finally:
        with suppress(curses.error):  # the terminal may be gone
            curses.curs_set(1)
        with suppress(curses.error):
            # Without another screen below this one, the shell's next prompt goes into the last line.
            window.move(window.getmaxyx()[0] - 1, 0)
            window.clrtoeol()
            window.refresh()
        with suppress(curses.error):
            curses.endwin()


def glyphs() -> Glyphs:
    """Return the signs that the locale has; the console's font lacks some of them."""
    encoding = locale.nl_langinfo(locale.CODESET).upper()
    plain = encoding not in {"UTF-8", "UTF8"} or os.environ.get("TERM") == "linux"
    return ASCII if plain else UNICODE


def _attributes() -> Mapping[Style, int]:
    attributes = dict(_ATTRIBUTES)
    # https://no-color.org: set and not empty.
    if not curses.has_colors() or os.environ.get("NO_COLOR"):
        return attributes
    curses.start_color()
    with suppress(curses.error):  # a terminal without colours of its own
        curses.use_default_colors()
    background = -1 if curses.tigetstr("op") else curses.COLOR_BLACK
    for number, (style, colour) in enumerate(_COLOURS.items(), start=1):
        curses.init_pair(number, colour, background)
        attributes[style] = curses.color_pair(number) | (curses.A_BOLD if style is Style.BAD else 0)
    return attributes
