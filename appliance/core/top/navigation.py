"""The state of the screen: view, order, filter, selection; and how each key changes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from appliance.core.top.keys import KEYS, Action, Mode
from appliance.core.top.tables import Order
from appliance.core.top.views import View

_LONGEST_FILTER: Final = 60
_EACH_VIEW: Final = tuple(View)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What is on the screen when a key is pressed: the rows by their keys, each with the pool that it opens.

    `columns` are the names of the view's columns, `page` how many rows fit, `lines` how many lines a text
    has.
    """

    rows: tuple[str, ...] = ()
    pools: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    page: int = 1
    lines: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPosition:
    """A list to which one can return: `pool` None is that of all pools, `selected` a row's key."""

    view: View
    pool: str | None = None
    selected: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenState:
    """The whole state.

    `before` are the places that were left by opening rows, the last one last. `filter` holds while `typed` is
    written in the mode FILTER. `about` is the row of the text that is read, None for the help; `first_line`
    is the top line of it.
    """

    place: ListPosition = ListPosition(view=View.SERVERS)
    before: tuple[ListPosition, ...] = ()
    mode: Mode = Mode.LIST
    orders: Mapping[View, Order] = field(default_factory=dict)
    filter: str = ""
    typed: str = ""
    about: str | None = None
    first_line: int = 0
    paused: bool = False
    ended: bool = False

    @property
    def view(self) -> View:
        """Return the view that is shown, or is below a text."""
        return self.place.view

    @property
    def order(self) -> Order:
        """Return the order of the view."""
        return self.orders.get(self.view, Order())

    @property
    def words(self) -> str:
        """Return the words that filter rows: typed ones count at once."""
        return self.typed if self.mode is Mode.FILTER else self.filter


def selected(state: ScreenState, rows: tuple[str, ...]) -> int:
    """Return the position of the selected row, or the first one if it is gone."""
    return rows.index(state.place.selected) if state.place.selected in rows else 0


def pressed(state: ScreenState, key: str, shown: Shown) -> ScreenState:
    """Return the state after a key; a key without a meaning changes nothing."""
    action = KEYS[state.mode].get(key)
    if action is Action.SHOW:
        return _to_view(state, _EACH_VIEW[int(key) - 1])
    if action is not None:
        return _ACTIONS[action](state, shown)
    if state.mode is Mode.FILTER and len(key) == 1 and key.isprintable():
        return replace(state, typed=(state.typed + key)[:_LONGEST_FILTER])
    return state


def _to_view(state: ScreenState, view: View) -> ScreenState:
    return replace(state, place=ListPosition(view=view), before=())


def _turn(step: int) -> Callable[[ScreenState, Shown], ScreenState]:
    def turned(state: ScreenState, _: Shown) -> ScreenState:
        position = _EACH_VIEW.index(state.view) + step
        return _to_view(state, _EACH_VIEW[position % len(_EACH_VIEW)])

    return turned


def _move(rows: Callable[[Shown], int]) -> Callable[[ScreenState, Shown], ScreenState]:
    def moved(state: ScreenState, shown: Shown) -> ScreenState:
        if not shown.rows:
            return state
        position = min(max(selected(state, shown.rows) + rows(shown), 0), len(shown.rows) - 1)
        return replace(state, place=replace(state.place, selected=shown.rows[position]))

    return moved


def _open(state: ScreenState, shown: Shown) -> ScreenState:
    key = _selected_key(state, shown)
    pool = shown.pools.get(key or "")
    if pool is None or state.view is not View.POOLS:
        return _why(state, shown)
    here = replace(state.place, selected=key)
    return replace(state, place=ListPosition(view=View.SERVERS, pool=pool), before=(*state.before, here))


def _selected_key(state: ScreenState, shown: Shown) -> str | None:
    return shown.rows[selected(state, shown.rows)] if shown.rows else None


def _why(state: ScreenState, shown: Shown) -> ScreenState:
    key = _selected_key(state, shown)
    if key is None:
        return state
    place = replace(state.place, selected=key)
    return replace(state, place=place, mode=Mode.TEXT, about=key, first_line=0)


def _back(state: ScreenState, _: Shown) -> ScreenState:
    if state.mode is Mode.TEXT:
        return replace(state, mode=Mode.LIST, about=None)
    if state.before:
        return replace(state, place=state.before[-1], before=state.before[:-1])
    return replace(state, filter="")


def _sort(step: int) -> Callable[[ScreenState, Shown], ScreenState]:
    def sorted_(state: ScreenState, shown: Shown) -> ScreenState:
        columns = (None, *shown.columns)
        current = state.order.column
        position = columns.index(current) if current in columns else 0
        order = Order(column=columns[(position + step) % len(columns)])
        return replace(state, orders={**state.orders, state.view: order})

    return sorted_


def _reverse(state: ScreenState, _: Shown) -> ScreenState:
    order = replace(state.order, reverse=not state.order.reverse)
    return replace(state, orders={**state.orders, state.view: order})


def _scroll(step: int) -> Callable[[ScreenState, Shown], ScreenState]:
    def scrolled(state: ScreenState, shown: Shown) -> ScreenState:
        last = max(0, shown.lines - shown.page)
        return replace(state, first_line=min(max(state.first_line + step, 0), last))

    return scrolled


_ACTIONS: Final[Mapping[Action, Callable[[ScreenState, Shown], ScreenState]]] = {
    Action.QUIT: lambda state, _: replace(state, ended=True),
    Action.HELP: lambda state, _: replace(state, mode=Mode.TEXT, about=None, first_line=0),
    Action.UP: _move(lambda _: -1),
    Action.DOWN: _move(lambda _: 1),
    Action.PAGE_UP: _move(lambda shown: -shown.page),
    Action.PAGE_DOWN: _move(lambda shown: shown.page),
    Action.FIRST: _move(lambda shown: -len(shown.rows)),
    Action.LAST: _move(lambda shown: len(shown.rows)),
    Action.NEXT_VIEW: _turn(1),
    Action.PREVIOUS_VIEW: _turn(-1),
    Action.OPEN: _open,
    Action.WHY: _why,
    Action.BACK: _back,
    Action.SORT_NEXT: _sort(1),
    Action.SORT_PREVIOUS: _sort(-1),
    Action.REVERSE: _reverse,
    Action.FILTER: lambda state, _: replace(state, mode=Mode.FILTER, typed=state.filter),
    Action.PAUSE: lambda state, _: replace(state, paused=not state.paused),
    Action.ACCEPT: lambda state, _: replace(state, mode=Mode.LIST, filter=state.typed),
    Action.CANCEL: lambda state, _: replace(state, mode=Mode.LIST),
    Action.ERASE: lambda state, _: replace(state, typed=state.typed[:-1]),
    Action.SCROLL_UP: _scroll(-1),
    Action.SCROLL_DOWN: _scroll(1),
}
