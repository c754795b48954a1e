"""Which key does what in which mode, as a table; help and hints are made from it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from appliance.core.top.views import View


class Mode(StrEnum):
    """What keys refer to: a list, the filter that is typed, or a text that is read."""

    LIST = "list"
    FILTER = "filter"
    TEXT = "text"


class Action(StrEnum):
    """What an operator can do, in the words of the help."""

    QUIT = "quit"
    HELP = "this help"
    UP = "select the row above"
    DOWN = "select the row below"
    PAGE_UP = "a page up"
    PAGE_DOWN = "a page down"
    FIRST = "select the first row"
    LAST = "select the last row"
    NEXT_VIEW = "next view"
    PREVIOUS_VIEW = "previous view"
    OPEN = "open: a pool shows its servers, others why they are in their state"
    WHY = "why it is in its state"
    BACK = "back"
    SORT_NEXT = "sort by the next column"
    SORT_PREVIOUS = "sort by the previous column"
    REVERSE = "turn the order round"
    FILTER = "show only rows with some words"
    PAUSE = "stand still, or go on"
    ACCEPT = "keep the filter"
    CANCEL = "leave the filter as it was"
    ERASE = "erase the last letter"
    SCROLL_UP = "scroll up"
    SCROLL_DOWN = "scroll down"
    SHOW = "show a view by its number"


_MOVES: Final = {
    "up": Action.UP,
    "k": Action.UP,
    "down": Action.DOWN,
    "j": Action.DOWN,
    "page-up": Action.PAGE_UP,
    "page-down": Action.PAGE_DOWN,
    "home": Action.FIRST,
    "g": Action.FIRST,
    "end": Action.LAST,
    "G": Action.LAST,
}
_VIEWS: Final = {str(number): Action.SHOW for number, _ in enumerate(View, start=1)}

KEYS: Final[Mapping[Mode, Mapping[str, Action]]] = {
    Mode.LIST: {
        "q": Action.QUIT,
        "?": Action.HELP,
        "h": Action.HELP,
        **_MOVES,
        "tab": Action.NEXT_VIEW,
        "right": Action.NEXT_VIEW,
        "back-tab": Action.PREVIOUS_VIEW,
        "left": Action.PREVIOUS_VIEW,
        **_VIEWS,
        "enter": Action.OPEN,
        "w": Action.WHY,
        "escape": Action.BACK,
        "backspace": Action.BACK,
        ">": Action.SORT_NEXT,
        "<": Action.SORT_PREVIOUS,
        "r": Action.REVERSE,
        "/": Action.FILTER,
        "p": Action.PAUSE,
        " ": Action.PAUSE,
    },
    Mode.FILTER: {
        "enter": Action.ACCEPT,
        "escape": Action.CANCEL,
        "backspace": Action.ERASE,
    },
    Mode.TEXT: {
        "q": Action.QUIT,
        "up": Action.SCROLL_UP,
        "k": Action.SCROLL_UP,
        "down": Action.SCROLL_DOWN,
        "j": Action.SCROLL_DOWN,
        "escape": Action.BACK,
        "backspace": Action.BACK,
        "enter": Action.BACK,
        "left": Action.BACK,
        "?": Action.BACK,
    },
}
"""Keys are named as they are labelled; a letter stands for itself."""


def help_lines() -> tuple[str, ...]:
    """Return the help: each action of a list with its keys."""
    keys: dict[Action, list[str]] = {}
    for key, action in KEYS[Mode.LIST].items():
        keys.setdefault(action, []).append("space" if key == " " else key)
    lines = [f"  {_said(action, each):18} {action.value}" for action, each in keys.items()]
    views = ", ".join(f"{number} {view}" for number, view in enumerate(View, start=1))
    return (
        *lines,
        "",
        f"Views: {views}.",
        "Rates are a second, over the time between two looks; - is not known yet.",
        "errors/s counts connections that ended otherwise than client or operator wanted.",
        "Escape returns to the previous view.",
    )


def _said(action: Action, keys: list[str]) -> str:
    return f"{keys[0]}-{keys[-1]}" if action is Action.SHOW else " ".join(keys)
