"""What each key does to the screen; and that no sequence of keys leads anywhere else."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.top.keys import KEYS, Action, Mode, help_lines
from appliance.core.top.navigation import ListPosition, ScreenState, Shown, pressed, selected
from appliance.core.top.tables import Order
from appliance.core.top.views import View, column_names

pytestmark = pytest.mark.pure

SHOWN = Shown(
    rows=("a", "b", "c", "d", "e"),
    pools={"a": "a", "b": "b"},
    columns=("pool", "up", "total"),
    page=2,
    lines=9,
)
LIST = ScreenState(place=ListPosition(view=View.POOLS))


def after(*keys: str, state: ScreenState = LIST, shown: Shown = SHOWN) -> ScreenState:
    """Return the state after some keys."""
    for key in keys:
        state = pressed(state, key, shown)
    return state


@pytest.mark.parametrize(
    ("keys", "row"),
    [
        ([], None),
        (["down"], "b"),
        (["j", "j", "k"], "b"),
        (["up"], "a"),
        (["page-down"], "c"),
        (["page-down", "page-up"], "a"),
        (["end"], "e"),
        (["G", "down"], "e"),
        (["end", "home"], "a"),
    ],
)
def test_moving(keys: list[str], row: str | None):
    """The selection stays among the rows."""
    assert after(*keys).place.selected == row


def test_the_selection_follows_its_row():
    """It is of a row, not of a place; where the row is gone it is the first one."""
    state = after("down")
    assert selected(state, ("c", "b", "a")) == 1
    assert selected(state, ("c",)) == 0
    assert after("down", "end", "up", shown=Shown()).place.selected is None


def test_views():
    """By number, and round in both directions; each is a list of its own."""
    assert [after(str(number)).view for number in range(1, 8)] == list(View)
    assert after("8") == LIST
    assert after("tab").view is View.SERVERS
    assert after("left").view is View.FRONTENDS
    assert after("left", "back-tab").view is View.PROGRAMS
    assert after("end", "right", "left").place == ListPosition(view=View.POOLS)


def test_a_pool_is_opened_and_left():
    """Its servers are shown, and Escape leads back to the row."""
    opened = after("down", "enter")
    assert opened.place == ListPosition(view=View.SERVERS, pool="b")
    assert after("escape", state=opened).place == ListPosition(view=View.POOLS, selected="b")
    assert after("tab", state=opened).before == ()


def test_what_is_no_pool_is_explained():
    """And so is a pool by the key for that; there is nothing to explain without rows."""
    for keys in (["c", "w"], ["end", "enter"]):
        state = after(*keys)
        assert (state.mode, state.about) == (Mode.TEXT, state.place.selected)
    frontends = after("1", "enter")
    assert (frontends.mode, frontends.about) == (Mode.TEXT, "a")
    assert after("w", shown=Shown()) == LIST
    assert after("enter", shown=Shown()) == LIST


def test_a_text_is_scrolled_and_left():
    """From its first line to its last page."""
    state = after("w", "down", "j", "up")
    assert state.first_line == 1
    assert after(*["down"] * 20, state=state).first_line == 7
    assert after(*["up"] * 20, state=state).first_line == 0
    assert after("escape", state=state).mode is Mode.LIST
    assert after("?").about is None
    assert after("?", "?").mode is Mode.LIST
    assert after("w", "q").ended


def test_sorting():
    """By one column after the other and by none, forwards and backwards; each view has its own order."""
    assert [after(*[">"] * count).order.column for count in range(5)] == [None, "pool", "up", "total", None]
    assert after("<").order == Order(column="total")
    assert after(">", "r").order == Order(column="pool", reverse=True)
    assert after(">", "r", "r").order == Order(column="pool")
    assert after(">", "tab").order == Order()
    assert after(">", "tab", "left").order == Order(column="pool")
    unknown = replace(LIST, orders={View.POOLS: Order(column="elsewhere")})
    assert after(">", state=unknown).order.column == "pool"


def test_filtering():
    """What is typed counts at once; Enter keeps it, Escape does not, and later takes it away."""
    typing = after("/", "q", "X", "backspace", " ", "1")
    assert (typing.mode, typing.words, typing.filter, typing.ended) == (Mode.FILTER, "q 1", "", False)
    assert after("enter", state=typing).filter == "q 1"
    assert after("escape", state=typing).words == ""
    assert after("enter", "/", state=typing).typed == "q 1"
    assert after("enter", "escape", state=typing).filter == ""
    assert after("page-up", "\x01", state=typing) == typing
    assert len(after("/", *["x"] * 100).typed) == 60


def test_pausing_and_ending():
    """Both by one key."""
    assert after("p").paused
    assert not after(" ", "p").paused
    assert after("q").ended


def test_unknown_keys():
    """They mean nothing in a list or a text."""
    assert after("z", "\x00", "f12") == LIST
    text = after("w")
    assert after("z", "/", state=text) == text


keys = st.lists(st.sampled_from(sorted({key for each in KEYS.values() for key in each} | {"a", "\x01"})))
rows = st.lists(st.sampled_from("abcdef"), unique=True, max_size=6).map(tuple)


@given(keys, rows)
def test_any_keys(some: list[str], there: tuple[str, ...]):
    """However keys follow each other: what is selected is a row, and the order is by a column of its view."""
    state = ScreenState()
    for key in some:
        shown = Shown(
            rows=there,
            pools={each: each for each in there[:2]},
            columns=column_names(state.view),
            page=3,
            lines=10,
        )
        state = pressed(state, key, shown)
        assert state.place.selected is None or state.place.selected in there
        assert all(order.column in (None, *column_names(view)) for view, order in state.orders.items())
        assert 0 <= state.first_line <= 7
        assert (state.mode is Mode.TEXT) or state.about is None
        assert state.place.pool is None or state.view is View.SERVERS


@given(keys)
def test_one_can_always_leave(some: list[str]):
    """From anywhere Escape and q end it."""
    state = after(*some, state=ScreenState())
    assert after("escape", "q", state=replace(state, ended=False)).ended


def test_every_action_has_a_key_and_its_line_in_the_help():
    """Nothing can be done that the help does not tell."""
    assert {action for keys in KEYS.values() for action in keys.values()} == set(Action)
    told = "\n".join(help_lines())
    assert all(action.value in told for action in KEYS[Mode.LIST].values())
    assert "1-7" in told
