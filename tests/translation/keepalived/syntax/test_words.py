"""Comments, braces, quotes and words of a line, as keepalived 2.2 takes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.translation.keepalived.syntax.located_text import LineError, LocatedText
from appliance.translation.keepalived.syntax.words import (
    CommandError,
    command_words,
    first_piece,
    uncommented,
    words,
)

pytestmark = pytest.mark.pure


def line(text: str) -> LocatedText:
    """Return a text as line 3 of a file."""
    return LocatedText.of_line(text, source="f", line=3)


def pairs(text: str) -> list[tuple[str, int]]:
    """Return the words of a line, each with its column."""
    return [(each.text, each.place.column) for each in words(uncommented(line(text)))]


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("  a b  ", "a b"),
        ("a # b", "a"),
        ("a ! b", "a"),
        ("a#b", "a"),
        ("# a", ""),
        ("", ""),
        ('a "#!" b', 'a "#!" b'),
        (r"a\#b # c", "a#b"),
        (r"a\!b", "a!b"),
        (r'"a\#b"', r'"a\#b"'),
        (r"a\b", r"a\b"),
        (r"a \\", r"a \\"),
        ('a # "', "a"),
        ("a \\", "a \\"),
        ("a # b \\", "a\\"),
        ("# b \\", "\\"),
        ("a\r", "a"),
    ],
)
def test_comments(text: str, bare: str):
    """A comment begins at `#` or `!` outside of quotes; a backslash at the end counts even behind it."""
    assert uncommented(line(text)).text == bare


def test_quote_without_end():
    """A quote ends on its line."""
    with pytest.raises(LineError) as caught:
        uncommented(line('auth_pass "abc'))
    assert (caught.value.place.line, caught.value.place.column) == (3, 11)
    with pytest.raises(LineError):
        words(line('a "b'))


def test_words_have_their_columns():
    """Double quotes quote, and what is quoted is a word of its own; columns are those of the file."""
    assert pairs('  auth_pass "a b"c  d"e"') == [
        ("auth_pass", 3),
        ("a b", 13),
        ("c", 18),
        ("d", 21),
        ("e", 22),
    ]
    assert pairs(r"a 'b c' d\e") == [("a", 1), ("'b", 3), ("c'", 6), (r"d\e", 9)]
    assert pairs(r"label a\#b c") == [("label", 1), ("a#b", 7), ("c", 12)]


def test_lines_with_a_command():
    """On them `'` quotes, too, and a backslash escapes."""
    assert pairs("script 'killall -0 haproxy' # fast") == [("script", 1), ("killall -0 haproxy", 8)]
    assert pairs(r'notify "/a \"b c\"" root') == [("notify", 1), ('/a "b c"', 8), ("root", 21)]
    with pytest.raises(LineError) as caught:
        words(line("script 'a"))
    assert caught.value.place.column == 8


@pytest.mark.parametrize(
    ("text", "piece", "rest"),
    [
        ("a b", "a b", ""),
        ("a { b }", "a", "{ b }"),
        ("{ b }", "{", "b }"),
        ("} c", "}", "c"),
        ('"{" }', '"{"', "}"),
        ('a "b { c', 'a "b { c', ""),
    ],
)
def test_pieces(text: str, piece: str, rest: str):
    """A brace outside of quotes is a piece of its own."""
    first, after = first_piece(line(text))
    assert (first.text, after.text) == (piece, rest)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("a  b", ("a", "b")),
        ("a' 'b\"c d\"", ("a bc d",)),
        (r"a\ b \"c", ("a b", '"c')),
        (r"\x41\102\cA\n\q", ("AB\x01\nq",)),
        ('""', ("",)),
        (r"'it\'s'", ("it's",)),
    ],
)
def test_command_words(text: str, found: tuple[str, ...]):
    """Quotes of both kinds, and the escapes of keepalived.conf(5)."""
    assert command_words(text) == found


@pytest.mark.parametrize("text", ["'a", '"a', "a\\"])
def test_faults_of_commands(text: str):
    """What has no end is an error."""
    with pytest.raises(CommandError):
        command_words(text)


@given(st.text(max_size=60))
def test_any_text(text: str):
    """Whatever a line holds, there are words, each within the line, or a located error."""
    try:
        places = [each.place for each in words(uncommented(line(text)))]
    except LineError as error:
        places = [error.place]
    assert all(1 <= each.column <= len(text) for each in places)
