"""`model.messages.problems`: how a problem is told."""

import pytest

from appliance.model.messages.problems import (
    MOST_PROBLEMS,
    FaultyPaths,
    Finding,
    Problem,
    Severity,
    dotted,
    listed,
    nearest,
    ordered,
    shortened,
)

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem(message="wrong", source="a.yaml", path="log", line=3, column=1), "a.yaml:3:1: log: wrong"),
        (Problem(message="wrong", source="a.yaml"), "a.yaml: wrong"),
        (Problem(message="wrong", path="VARIABLE"), "VARIABLE: wrong"),
        (Problem(message="wrong"), "wrong"),
    ],
)
def test_a_problem_prints_what_it_knows(problem: Problem, text: str):
    """Place, path and message, as far as there are any."""
    assert str(problem) == text


def test_problems_come_in_the_order_of_the_file_and_once():
    """Without a place comes first, then by line and column; what is said twice is told once."""
    first, second, third = (
        Problem(message="a"),
        Problem(message="b", line=1, column=9),
        Problem(message="c", line=2, column=1),
    )

    assert ordered([third, second, first, second]) == (first, second, third)


@pytest.mark.parametrize(("path", "text"), [((), ""), (("a", "b", 0), "a.b[0]"), (("a", 1, "b"), "a[1].b")])
def test_paths(path: tuple, text: str):
    """Keys are joined by dots, items of lists stand in brackets."""
    assert dotted(path) == text


@pytest.mark.parametrize(("word", "meant"), [("master", "masters"), ("xyz", None)])
def test_the_nearest_word(word: str, meant: str | None):
    """A slip of the pen is recognised, anything else is not guessed."""
    assert nearest(word, ["masters", "routers"]) == meant


@pytest.mark.parametrize(
    ("path", "hangs"),
    [
        (("a", "b"), True),
        (("a",), True),
        (("a", "b", "c"), False),
        (("d",), True),
        (("a", "c"), False),
        (("d", 0), True),
        (("e",), False),
    ],
)
def test_what_a_finding_hangs_on(path: tuple, *, hangs: bool):
    """What holds it, and what it was concluded from, with all above and below."""
    finding = Finding(path=("a", "b"), message="", touches=(("d",),))
    assert FaultyPaths([path, ("z",)]).concern(finding) is hangs


def test_words_are_not_compared_with_very_many():
    """A mistake costs a bounded time: with a thousand words known none is guessed, and a few are listed."""
    known = [f"pool-{number}" for number in range(1000)]
    assert nearest("pool-10000", known) is None
    assert listed(known).endswith("pool-19 and 980 others")
    assert listed(known[:2]) == "pool-0, pool-1"


def test_a_hundred_problems_are_told_and_the_others_counted():
    """Errors come before warnings where not all fit; the order stays that of the file."""
    warnings = [Problem(message="w", line=line, severity=Severity.WARNING) for line in range(1, 81)]
    errors = [Problem(message="e", line=line) for line in range(100, 160)]
    assert shortened(warnings, source="f") == tuple(warnings)
    told = shortened([*warnings, *errors], source="f")
    assert told[:-1] == (*warnings[:40], *errors)
    more = "40 more warnings are not shown"
    assert told[-1] == Problem(message=more, severity=Severity.WARNING, source="f")
    errors += [Problem(message="e", line=line) for line in range(200, 260)]
    both = shortened([*errors, *warnings], source="f")
    assert both[-1].message == "20 more errors and 80 more warnings are not shown"
    assert both[-1].severity is Severity.ERROR
    assert len(both) == MOST_PROBLEMS + 1
