"""`model.problems`: how a problem is told."""

import pytest

from appliance.model.problems import Finding, Problem, dotted, nearest, ordered

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
    assert Finding(path=("a", "b"), message="", touches=(("d",),)).hangs_on(path) is hangs
