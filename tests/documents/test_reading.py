"""Each page says for whom it is and how long it takes; figures of the front pages are measured ones."""

import re
from pathlib import Path
from typing import Final

import pytest
from support.documents.pages import DOCS, ROOT, name_of

pytestmark = pytest.mark.pure

_PAGES: Final = tuple(sorted(DOCS.rglob("*.md")))
_HEAD: Final = re.compile(
    r"# .+\n\n\*For [^*]+\. (?:(?P<minutes>[0-9]+) minutes?\b[^*]*|To look things up|A quarter[^*]*)\.\*\n"
)
_WORDS_A_MINUTE: Final = 200
_TITLES: Final = "| here | HAProxy | keepalived | RFC 9568, kernel | what it is |"


@pytest.mark.parametrize("path", _PAGES, ids=name_of)
def test_it_says_for_whom_and_how_long(path: Path):
    """Under its title; the minutes are those of its words, at the pace of somebody who reads commands."""
    text = path.read_text()
    found = _HEAD.match(text)
    assert found, text[:200]
    if found["minutes"]:
        wanted = len(text.split()) / _WORDS_A_MINUTE
        assert wanted * 0.6 - 1 <= int(found["minutes"]) <= wanted * 1.5 + 2


@pytest.mark.promise("docs/glossary.md", "its words are those of CONTRIBUTING")
def test_the_words_are_found_by_their_letter():
    """The glossary has every row of the table, in alphabetical order."""
    rows = [each for each in (DOCS / "glossary.md").read_text().splitlines() if each.startswith("| ")][1:]
    words = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## Words\n")[2].partition("\n## ")[0]
    assert set(rows) == {each for each in words.splitlines() if each.startswith("| ")} - {_TITLES}
    assert [each.lower() for each in rows] == sorted(each.lower() for each in rows)


def test_figures_of_readme_are_measured_ones():
    """Each number of its first screen is one of bench/README.md's."""
    screen = (ROOT / "README.md").read_text().partition("![")[0].partition("Nothing else")[2]
    numbers = re.findall(r"(?<![\w.])[0-9][0-9.,]*[0-9]", screen)
    measured = (ROOT / "bench" / "README.md").read_text()
    assert len(numbers) >= 7
    assert [
        each for each in numbers if not re.search(rf"(?<![0-9.,]){re.escape(each)}(?![0-9])", measured)
    ] == []
