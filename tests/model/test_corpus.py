"""Bad configurations and what is said of them: twin files in `corpus`, all problems of a file in one go.

A line of a `.problems` file is `line:column: path: message`, with `warning: ` before it where it is one.
"""

from pathlib import Path

import pytest

from appliance.model.loading.loading import load
from appliance.model.messages.problems import Problem, Severity

pytestmark = pytest.mark.pure

CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(path for path in CORPUS.iterdir() if path.suffix != ".problems")


def _line(problem: Problem) -> str:
    mark = "warning: " if problem.severity is Severity.WARNING else ""
    return mark + str(problem).removeprefix("FILE:")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_problem_is_told_with_its_place(path: Path):
    """A file gives exactly the problems of its twin, in the order of the file."""
    problems = load(path.read_bytes(), source="FILE", number=1).problems

    assert [_line(each) for each in problems] == path.with_suffix(".problems").read_text().splitlines()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_an_error_leaves_no_snapshot(path: Path):
    """There is a snapshot exactly where there is no error."""
    loaded = load(path.read_bytes(), source="FILE", number=1)

    assert (loaded.snapshot is None) == bool(loaded.errors)


def test_no_message_speaks_of_pydantic():
    """Operators are not told of inputs, dictionaries and tuples."""
    told = "".join(path.read_text() for path in CORPUS.glob("*.problems")).lower()
    words = ("input", "dictionary", "tuple", "pydantic", "valid")

    assert [word for word in words if word in told] == []
