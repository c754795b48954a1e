"""Sorting, filtering and fitting of any table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.top.columns import taken, widths
from appliance.core.top.tables import (
    Cell,
    Column,
    Order,
    Row,
    Table,
    filtered,
    ordered,
)

pytestmark = pytest.mark.pure

COLUMNS = (
    Column(name="name", title="name"),
    Column(name="state", title="state", rank=2),
    Column(name="rate", title="rate", number=True),
    Column(name="detail", title="detail", rank=3),
)
WORDS = st.text(alphabet="abcAB/-", max_size=12)


def row(key: str, state: str | None, rate: float | None, detail: str = "") -> Row:
    """Return a row."""
    cells = (
        Cell(text=key, value=key),
        Cell(text=state or "-", value=state),
        Cell(text="-" if rate is None else f"{rate:g}", value=rate),
        Cell(text=detail, value=detail),
    )
    return Row(key=key, cells=cells)


rows = st.lists(
    st.builds(row, WORDS, st.none() | WORDS, st.none() | st.integers(-5, 10**6).map(float), WORDS),
    max_size=12,
    unique_by=lambda each: each.key,
).map(tuple)
orders = st.builds(
    Order, column=st.sampled_from([None, "name", "state", "rate", "gone"]), reverse=st.booleans()
)


@given(rows, orders)
def test_sorting_loses_nothing(some: tuple[Row, ...], order: Order):
    """The same rows, and once sorted they stay as they are."""
    table = Table(columns=COLUMNS, rows=some)
    once = ordered(table, some, order)
    assert sorted(each.key for each in once) == sorted(each.key for each in some)
    if order.column in ("name", "state", "rate"):
        assert ordered(table, once, order) == once


@given(rows, st.booleans())
def test_sorted_by_a_number(some: tuple[Row, ...], reverse: bool):  # noqa: FBT001  # drawn
    """The largest first, or the smallest; what is not known is last either way."""
    order = Order(column="rate", reverse=reverse)
    values = [each.cells[2].value for each in ordered(Table(columns=COLUMNS, rows=some), some, order)]
    known = [float(each) for each in values if each is not None]
    assert values[: len(known)] == sorted(known, reverse=not reverse)


def test_without_a_column_the_order_is_the_configuration_s():
    """Or that turned round."""
    some = (row("b", None, 1), row("a", None, 2))
    table = Table(columns=COLUMNS, rows=some)
    assert ordered(table, some, Order()) == some
    assert ordered(table, some, Order(reverse=True)) == some[::-1]


@given(rows, st.lists(WORDS, max_size=3))
def test_a_filter_keeps_exactly_the_rows_with_all_words(some: tuple[Row, ...], words: list[str]):
    """In whatever case and column, in the order in which they were."""
    kept = filtered(some, " ".join(words))
    for each in some:
        text = " ".join((each.key, *(cell.text for cell in each.cells))).lower()
        assert (each in kept) is all(word.lower() in text for word in words)


def test_cases_do_not_count():
    """DOWN and down are the same."""
    assert filtered((row("a", "down", 1), row("b", "up", 1)), "DOWN A")[0].key == "a"


@given(rows, st.integers(1, 120), orders)
def test_columns_fit(some: tuple[Row, ...], width: int, order: Order):
    """Those of rank 0 stay, others go with the highest rank first, and the name is cut at the last."""
    table = Table(columns=COLUMNS, rows=some)
    sizes = widths(table, some, width, order)
    assert len(sizes) == len(COLUMNS)
    assert sizes[0] > 0
    assert sizes[2] > 0
    if sizes[3]:
        assert sizes[1]
    if sizes[1]:
        assert taken(sizes) <= width


def test_a_table_without_columns_has_no_width():
    """Nothing is shown of it."""
    assert widths(Table(columns=(), rows=()), (), 80, Order()) == ()
