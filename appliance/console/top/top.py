"""`appliance top`: current activity, in a terminal that stays up to date, or once as text."""

import os
import select
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from enum import Enum
from typing import Final

import click
import gevent
from gevent.queue import Queue
from gevent.socket import wait_read

from appliance.console.output.printing import print_json, text_width
from appliance.console.program_questions import interrupt_quietly
from appliance.console.runtime_access import require_access
from appliance.console.top.looking import Looker
from appliance.console.top.terminal import Screen, opened, require_terminal
from appliance.core.status.headline import headline
from appliance.core.top.layout import Scene, lines, report, shown
from appliance.core.top.navigation import ListPosition, ScreenState, pressed
from appliance.core.top.rates import Sample
from appliance.core.top.tables import Order, filtered, ordered
from appliance.core.top.views import View, column_names, table
from appliance.model.paths import Paths

_SHORTEST: Final = 0.2
_LONGEST: Final = 3600.0


class _Event(Enum):
    """Events of the loop other than samples and keys."""

    RESIZED = "resized"
    SUSPENDED = "suspended"
    ENDED = "ended"


_Happening = Sample | str | BaseException | _Event
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(looker: Looker, state: ScreenState, *, interval: float) -> None:
    """Show the screen until the operator quits, or the terminal is gone."""
    events: Queue[_Happening] = Queue()
    with opened() as screen:
        for number in _ENDS:
            gevent.signal_handler(number, events.put, _Event.ENDED)
        gevent.signal_handler(signal.SIGWINCH, events.put, _Event.RESIZED)
        suspension = _Suspension(events)
        greenlets = [
            gevent.spawn(_look_always, looker, events, interval),
            gevent.spawn(_read_always, screen, events),
        ]
        try:
            _show(screen, looker, state, events, suspension)
        finally:
            gevent.killall(greenlets)


class _Suspension:
    """Ctrl-Z: between two drawings, as curses' own handler acts in the middle of one and can hang there."""

    def __init__(self, events: "Queue[_Happening]") -> None:
        self._events = events
        self._take()

    def _take(self) -> None:
        self._handler = gevent.signal_handler(signal.SIGTSTP, self._events.put, _Event.SUSPENDED)

    def stop(self) -> None:
        """Stop as by default, until the shell continues; without a shell that could, the kernel does not."""
        self._handler.cancel()
        os.kill(os.getpid(), signal.SIGTSTP)
        self._take()


def _show(
    screen: Screen,
    looker: Looker,
    state: ScreenState,
    events: "Queue[_Happening]",
    suspension: _Suspension,
) -> None:
    scene = Scene(sample=None, state=state, explain=looker.explain, moment=looker.moment)
    while not scene.state.ended:
        screen.draw(lines(scene, screen.size))
        happening = events.get()
        match happening:
            case _Event.ENDED:
                return
            case _Event.RESIZED:
                screen.resized()
            case _Event.SUSPENDED:
                screen.given_back()
                suspension.stop()
                screen.resized()
            case BaseException():
                raise happening
            case str():
                now = pressed(scene.state, happening, shown(scene, screen.size))
                scene = replace(scene, state=now)
            case Sample() if not scene.state.paused:
                scene = replace(scene, sample=happening)


def _look_always(looker: Looker, events: "Queue[_Happening]", interval: float) -> None:
    while True:
        began = time.monotonic()
        try:
            events.put(looker.look())
        except Exception as error:  # noqa: BLE001  # the boundary of a greenlet: raised where it is waited for
            events.put(error)
            return
        gevent.sleep(max(0.0, began + interval - time.monotonic()))


def _read_always(screen: Screen, events: "Queue[_Happening]") -> None:
    descriptor = sys.stdin.fileno()
    while True:
        wait_read(descriptor)
        keys: Sequence[str] = tuple(screen.keys())
        for key in keys:
            events.put(key)
        if not keys and _hung_up(descriptor):
            events.put(_Event.ENDED)
            return


def _hung_up(descriptor: int) -> bool:
    """Return whether the terminal is gone: the only sign for a program that ignores SIGHUP."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return bool(poll.poll(0))


@click.command(epilog="Example: appliance top --view pools; appliance top --once | grep -c down")
@click.option(
    "--interval",
    type=click.FloatRange(_SHORTEST, _LONGEST),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Between two samples.",
)
@click.option("--view", type=click.Choice([each.value for each in View]), help="The view to begin with.")
@click.option("--sort", metavar="COLUMN", help="Column to sort by: a key of --json, such as new_per_second.")
@click.option("--filter", "words", default="", metavar="WORDS", help="Show only rows with all these words.")
@click.option("--once", is_flag=True, help="Print one sample as text after one interval, and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print one sample as JSON.")
@click.pass_obj
def top(  # one for each option
    paths: Paths,
    *,
    interval: float,
    view: str | None,
    sort: str | None,
    words: str,
    once: bool,
    as_json: bool,
) -> None:
    """Show live figures: connections and bytes per second, sessions, queues, checks, errors, virtual IPs.

    Press ? for the keys. Changes nothing, and continues while programs are down or restart. --once needs no
    terminal, and always exits with code 0.

    JSON: at (Unix seconds), seconds (between two samples), verdict, and for each view a list of its rows;
    rates are per second, null if unknown.
    """
    require_access(paths.runtime)
    state = _state(view, sort, words)
    interrupt_quietly()
    looker = Looker(paths)
    if not (once or as_json):
        require_terminal()
        run(looker, state, interval=interval)
        return
    looker.look()
    gevent.sleep(interval)
    views = tuple(View) if view is None else (View(view),)
    sample = looker.look()
    if as_json:
        print_json(_values(sample, looker, state, views))
        return
    scene = Scene(sample=sample, state=state, explain=looker.explain, moment=looker.moment)
    for line in report(scene, sample, views, text_width()):
        click.echo("".join(span.text for span in line).rstrip())


def _state(view: str | None, sort: str | None, words: str) -> ScreenState:
    begun = ScreenState(filter=words)
    if view is not None:
        begun = replace(begun, place=ListPosition(view=View(view)))
    if sort is None:
        return begun
    columns = {name for each in View for name in column_names(each)}
    if sort not in columns:
        near = get_close_matches(sort, sorted(columns), n=3) or sorted(columns)
        hint = f"there is no column {sort!r}. Did you mean {', '.join(near)}?"
        raise click.BadParameter(hint, param_hint="--sort")
    return replace(begun, orders=dict.fromkeys(View, Order(column=sort)))


def _values(
    sample: Sample, looker: Looker, state: ScreenState, views: tuple[View, ...]
) -> Mapping[str, object]:
    """Return the tables in the form of the JSON."""
    said = headline(sample.status, moment=looker.moment).text
    found: dict[str, object] = {"at": sample.status.at, "seconds": sample.rates.seconds, "verdict": said}
    for view in views:
        seen = table(view, sample)
        rows = ordered(seen, filtered(seen.rows, state.filter), state.order)
        names = [each.name for each in seen.columns]
        found[view.value] = [
            dict(zip(names, (cell.value for cell in row.cells), strict=True)) for row in rows
        ]
    return found
