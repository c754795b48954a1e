"""Documents laid over each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.document.document import Document, read
from appliance.model.document.layers import Clash, laid_over
from appliance.model.document.tree import plain
from appliance.model.messages.problems import FilePosition

pytestmark = pytest.mark.pure


def test_each_says_what_the_other_does_not():
    """Mappings become one, however deep; each key keeps its place."""
    below = read("pools:\n  masters:\n    balance: source\n")
    above = read("log: { level: debug }\npools:\n  masters:\n    retries: 1\n  others: {}\n")

    layered = laid_over(below.root, above.root)

    assert plain(layered.root) == {
        "pools": {"masters": {"balance": "source", "retries": 1}, "others": {}},
        "log": {"level": "debug"},
    }
    assert layered.clashes == ()
    whole = Document(root=layered.root)
    assert whole.place(("pools", "masters", "balance")) == FilePosition(line=3, column=14)
    assert whole.place(("pools", "masters", "retries")) == FilePosition(line=4, column=14)


def test_what_both_say_is_a_clash():
    """A key with a value in both is told with both places, also where one is a mapping."""
    below = read("a: 1\nb: { c: [1], d: 2 }\ne: { f: 1 }\n")
    above = read("e: off\nb: { d: 2, c: [2] }\na: 1\n")

    layered = laid_over(below.root, above.root)

    assert [(each.path, each.below.line, each.above.line) for each in layered.clashes] == [
        (("a",), 1, 3),
        (("b", "c"), 2, 2),
        (("b", "d"), 2, 2),
        (("e",), 3, 1),
    ]
    assert plain(layered.root) == {"a": 1, "b": {"c": [1], "d": 2}, "e": {"f": 1}}


@pytest.mark.parametrize(("below", "above"), [("a:\n", "a: { b: 1 }\n"), ("a: { b: 1 }\n", "a:\n")])
def test_nothing_says_nothing(below: str, above: str):
    """A key with nothing behind it does not clash, in whichever layer it is."""
    layered = laid_over(read(below).root, read(above).root)

    assert (plain(layered.root), layered.clashes) == ({"a": {"b": 1}}, ())


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(1, 3)),
    st.dictionaries(st.sampled_from("abcd"), st.integers(1, 3)),
)
def test_nothing_is_lost(below: dict[str, int], above: dict[str, int]):
    """Every key of both is there, and each that both have is a clash."""
    layered = laid_over(read(f"{{x: 0, {_flow(below)}}}").root, read(f"{{y: 0, {_flow(above)}}}").root)

    assert plain(layered.root) == {"y": 0, **above, "x": 0, **below}
    assert {each.path for each in layered.clashes} == {(key,) for key in below.keys() & above.keys()}
    assert all(isinstance(each, Clash) for each in layered.clashes)


def _flow(value: dict[str, int]) -> str:
    return ", ".join(f"{key}: {each}" for key, each in value.items())
