"""The search for a regular expression finds what Python's `re` finds, however the answer is cut."""

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.byte_pattern import byte_pattern
from appliance.wire.checks.pattern_search import PatternSearch

pytestmark = pytest.mark.pure

_ATOMS = st.sampled_from(
    ["a", "b", "ab", ".", "[ab]", "[^a]", "[a-c1]", r"\d", r"\D", r"\w", r"\s", r"\n", "()"]
)
_REPEATS = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,1}", "{2,}", "*?", "{,2}"])
_INNER = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(inner, _REPEATS).map(lambda two: f"(?:{two[0]}){two[1]}"),
    ),
    max_leaves=6,
)
PATTERNS = st.tuples(st.sampled_from(["", "(?i)", "^"]), _INNER, st.sampled_from(["", "$"])).map("".join)


def noise(size: int) -> bytes:
    """Return bytes of two letters in no order."""
    return bytes(Random(1).choices(b"ab", k=size))  # noqa: S311  # a test wants them predictable


def search(pattern: str, answer: bytes, size: int = 1) -> PatternSearch:
    """Return the search after the whole answer, in pieces of this size."""
    made = PatternSearch(byte_pattern(pattern))
    for at in range(0, len(answer), size):
        made.feed(answer[at : at + size])
    return made


@given(PATTERNS, st.lists(st.sampled_from(b"abcAB1 \n{,2}")).map(bytes), st.integers(1, 4))
def test_it_finds_what_others_find(pattern: str, answer: bytes, size: int):
    """The real thing is the measure: Python's own search in the whole answer."""
    python = pattern.replace("{,2}", r"\{,2\}")  # as in PCRE these are characters, and not a count
    assert search(pattern, answer, size).found == bool(re.search(python.encode(), answer))


@pytest.mark.parametrize(
    ("pattern", "answer", "found"),
    [
        ("^220[ -]", b"220 mail ready\r\n", True),
        ("^220[ -]", b"554 no\r\n220 x", False),
        ("(2..|3..)", b"HTTP/1.1 302 Found", True),
        ("role:(master|slave)", b"# Replication\r\nrole:master\r\n", True),
        ("(?i)role:MASTER", b"Role:Master", True),
        (r"^R\x00{3}.\x00", b"R\x00\x00\x00\x08\x00", True),
        ("[]a]", b"]", True),
        ("[a-]", b"-", True),
        (r"[^\r\n]", b"\r\n", False),
        (r"[\]\x41-\x43]x", b"Bx", True),
        (r"\+PONG\t\f\e\.", b"+PONG\t\f\x1b.", True),
        ("ok$", b"ok\n", True),
        ("ok$", b"ok\n\n", False),
        ("é", "né".encode(), True),
        ("a{x}", b"a{x}", True),
    ],
)
def test_expressions_of_checks(pattern: str, answer: bytes, found: bool):  # noqa: FBT001  # a column of the table
    """What people write in haproxy.cfg, in PCRE's language."""
    assert search(pattern, answer).found is found
    assert search(pattern, answer, size=100).found is found


def test_once_found_it_stays_found():
    """What comes later is not looked at any more."""
    made = search("ab", b"xab")
    made.feed(b"yyy")
    assert made.found


def test_an_answer_that_costs_too_much_is_given_up():
    """Whoever chooses the bytes cannot keep the one process that checks all servers busy."""
    answer = noise(16_384)
    made = search("(a|b)*a(a|b){200}c", answer, size=4096)
    assert made.given_up
    assert not made.found
    assert not search("(a|b)*a(a|b){3}c", answer, size=4096).given_up


def test_sets_are_forgotten_and_found_again():
    """With more sets than are remembered the search goes on as before."""
    answer = noise(6_000)
    pattern = "a(a|b){9}cd"
    assert not search(pattern, answer, size=512).found
    assert search(pattern, answer + b"abbbbbbbbbcd", size=512).found


@given(PATTERNS, st.lists(st.lists(st.sampled_from(b"abcAB1 \n")).map(bytes), max_size=4))
def test_one_search_after_another(pattern: str, answers: list[bytes]):
    """A search that begins anew finds what a new one finds, whatever was searched before."""
    made = PatternSearch(byte_pattern(pattern))
    for each in answers:
        made.restart()
        made.feed(each)
        assert made.found == search(pattern, each).found


def test_what_is_remembered_over_searches_is_bounded():
    """Texts that lead to ever new sets of states leave no more behind than one text may."""
    made = PatternSearch(byte_pattern("(a|b)*a(a|b){12}c"))
    for seed in range(30):
        made.restart()
        made.feed(bytes(Random(seed).choices(b"ab", k=250)))  # noqa: S311  # a test wants them predictable
    assert _reachable(made) <= 600


def _reachable(made: PatternSearch) -> int:
    """Return how many sets the search holds."""
    open_, seen = [made._start, made._again, made._now, made._before], set[int]()
    while open_:
        each = open_.pop()
        if id(each) not in seen:
            seen.add(id(each))
            open_.extend(each.leads.values())
    return len(seen)
