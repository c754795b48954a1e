"""A line as words: quotes, escapes, comments and variables, as the real HAProxy reads them.

`test_against_haproxy.py` feeds the same to the real one.
"""

import pytest

from appliance.translation.haproxy.text.variables import Variables
from appliance.translation.haproxy.text.words import Unset, WordError, cut

pytestmark = pytest.mark.pure


def variables() -> Variables:
    """Return variables, at line 7 of the section `masters`."""
    found = Variables({"A": "va", "L": "x y  z", "E": ""}, source="haproxy.cfg")
    found.line, found.section = 7, "masters"
    return found


def texts(line: str) -> list[str]:
    """Return the words of a line without their places."""
    return [each.text for each in cut(line, variables())]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", []),
        ("  \t ", []),
        ("# all of it", []),
        ("server a 10.0.0.1:80", ["server", "a", "10.0.0.1:80"]),
        ("a\t b\vc\fd", ["a", "b", "c", "d"]),
        ("a b # c", ["a", "b"]),
        ("a#b", ["a"]),
        (r"a\#b", ["a#b"]),
        ('"a # b"', ["a # b"]),
        ('a"b c"d', ["ab cd"]),
        ("'a \"b\" $A \\'", ['a "b" $A \\']),
        (r'"a \"b\" \$A"', ['a "b" $A']),
        (r"\$A", ["\\$A"]),
        (r"a\ b\\c\td\ne\rf\x41\"\'", ["a b\\c\td\ne\rfA\"'"]),
        (r"\a\{", [r"\a\{"]),
        ("a\rb", ["a"]),
        ("a\0b", ["a"]),
        ('a "" b', ["a", "", "b"]),
        ('a ""', ["a"]),
        ("$A", ["$A"]),
        ('"$A/${A}"', ["va/va"]),
        ('"${N-x y}" "${A-x}" "${E-x}" b', ["x y", "va", "", "b"]),
        ('"${L[*]}"', ["x", "y", "z"]),
        ('p"${L[*]}"q', ["px", "y", "zq"]),
        ('"${.LINE}:$.FILE:$.SECTION"', ["7:haproxy.cfg:masters"]),
    ],
)
def test_a_line_is_cut(line: str, expected: list[str]):
    """Each form gives the words that HAProxy gets."""
    assert texts(line) == expected


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ('a "b', 3, 'the quote " is not closed'),
        ("a 'b", 3, "the quote ' is not closed"),
        (r"a \xg0", 3, "hexadecimal"),
        (r"a \x4", 3, "hexadecimal"),
        (r"a \xe9", 3, "the character itself"),
        ('a "$"', 4, "expected a variable name"),
        ('a "${1}"', 4, "expected a variable name"),
        ('a "${A"', 4, "expected `}`"),
        ('a "${A x}"', 4, "expected `}`"),
        ('a "$.FOO"', 4, "HAProxy has no variable `.FOO`"),
        ('a "$NONE"', 4, "the variable `NONE` is not set"),
        ('a "$HAPROXY_LOCALPEER"', 4, "is set by HAProxy itself"),
        ("a" + " b" * 64, 129, "more than 64 words"),
    ],
)
def test_a_line_that_cannot_be_cut(line: str, column: int, message: str):
    """The fault has its column, and the message says what would be right."""
    with pytest.raises(WordError) as caught:
        cut(line, variables())
    assert caught.value.column == column
    assert message in caught.value.message


def test_words_have_columns():
    """A column counts characters from 1; quotes belong to the word, and so does what a variable gave."""
    found = cut('  \'a\' b"$A"  "${L[*]}"', variables())
    assert [(each.text, each.column) for each in found] == [
        *(("a", 3), ("bva", 7), ("x", 14), ("y", 15), ("z", 15)),
    ]


def test_what_is_not_set_is_nothing_in_a_condition():
    """There a variable may be missing, but HAProxy's own cannot be known."""
    assert [each.text for each in cut('.if "$NONE" x', variables(), unset=Unset.EMPTY)] == [".if", "", "x"]
    with pytest.raises(WordError, match="HAProxy itself"):
        cut('.if "$HAPROXY_MWORKER"', variables(), unset=Unset.EMPTY)


def test_variables_change():
    """`setenv` and its kin hold for what follows; one of HAProxy's names that is set has a value."""
    found = variables()
    found.set("HAPROXY_X", "1")
    assert not found.is_haproxys("HAPROXY_X")
    found.unset(["A", "NONE"])
    assert found.value("A") is None
    found.keep_only(["L"])
    assert (found.value("L"), found.value("HAPROXY_X")) == ("x y  z", None)
