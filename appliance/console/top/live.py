"""The loop of `appliance top`: samples, keys and signals come in, each redraws the screen."""

import select
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum

import gevent
from gevent.queue import Queue
from gevent.socket import wait_read

from appliance.console.top.looking import Looker
from appliance.console.top.terminal import Screen, opened
from appliance.core.top.layout import Scene, lines, shown
from appliance.core.top.sample import Sample
from appliance.core.top.screen_state import ScreenState, pressed


class _Event(Enum):
    """Events of the loop other than samples and keys."""

    RESIZED = "resized"
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
        greenlets = [
            gevent.spawn(_look_always, looker, events, interval),
            gevent.spawn(_read_always, screen, events),
        ]
        try:
            _show(screen, looker, state, events)
        finally:
            gevent.killall(greenlets)


def _show(screen: Screen, looker: Looker, state: ScreenState, events: "Queue[_Happening]") -> None:
    scene = Scene(sample=None, state=state, explain=looker.explain, moment=looker.moment)
    while not scene.state.ended:
        screen.draw(lines(scene, screen.size))
        happening = events.get()
        match happening:
            case _Event.ENDED:
                return
            case _Event.RESIZED:
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
