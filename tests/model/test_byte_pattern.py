"""What regular expressions of checks may say; what is found by them is in `tests/wire/checks`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.byte_pattern import LONGEST, AtEnd, AtStart, Fork, Found, OneOf, byte_pattern

pytestmark = pytest.mark.pure

WRONG = {
    "": "must be a regular expression of 1 to 256 bytes",
    "x" * (LONGEST + 1): "must be a regular expression of 1 to 256 bytes",
    "a)": "a `)` without its `(`",
    "(a": "a `(` without its `)`",
    "(?=a)": "`(?` is not understood",
    "a(?i)b": "`(?` is not understood",
    "(" * 21 + ")" * 21: "more than 20 groups",
    "a++": "gives nothing back",
    "a**": "a repetition of a repetition",
    "*a": "a repetition of nothing",
    "^*": "a repetition of nothing",
    "a{256}": "a count that is not from 0 to 255",
    "a{3,2}": "a count that is not from 0 to 255, or upside down",
    "[a": "an end in the middle",
    "[b-a]": "a range of characters that is none, or upside down",
    r"[\d-z]": "a range of characters",
    "[[:digit:]]": "a named class",
    r"(a)\1": r"`\1` is not understood",
    r"\bword": r"`\b` is not understood",
    r"\x4": r"`\x` is not understood",
    "a\\": "an end in the middle",
    "((a{200}){200})": "too many repetitions",
    "(((){255}){255}){255}": "too many repetitions",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_cannot_be_searched_for_in_one_pass_is_refused(text: str):
    """The message says what it is, and quotes the expression."""
    with pytest.raises(ValueError, match="regular expression") as caught:
        byte_pattern(text)
    assert WRONG[text] in str(caught.value)


def test_an_expression_is_a_program():
    """Its states lead from the first one to the end."""
    found = byte_pattern("^a|b$")
    assert found.states == (
        *(Found(), OneOf(1 << ord("a"), 0), AtStart(1)),
        *(AtEnd(0), OneOf(1 << ord("b"), 3)),
        Fork((2, 4)),
    )
    assert found.first == 5


@given(st.text(max_size=60))
def test_any_text_is_a_program_or_an_error_in_words(text: str):
    """Nothing but ValueError is raised, and no state leads to one that is not there."""
    try:
        found = byte_pattern(text)
    except ValueError:
        return
    for state in found.states:
        match state:
            case Fork(ways):
                assert max(ways) < len(found.states)
            case OneOf(_, then) | AtStart(then) | AtEnd(then):
                assert then < len(found.states)
            case _:
                assert state == Found()


def test_case_may_mean_nothing_everywhere():
    """To be told so from outside is the same as `(?i)` at the beginning, and both together are too."""
    assert byte_pattern("a[b-d]", no_case=True) == byte_pattern("(?i)a[b-d]")
    assert byte_pattern("(?i)a[b-d]", no_case=True) == byte_pattern("(?i)a[b-d]")
