"""Every link between pages leads somewhere, in the repository and so for who reads it there."""

import re
from pathlib import Path
from typing import Final

import pytest
from markdown.extensions.toc import slugify
from support.documents.pages import ROOT, name_of, pages

pytestmark = pytest.mark.pure

_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_CODE: Final = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
_HEADING: Final = re.compile(r"^#+ +(.*?) *#*$", re.MULTILINE)
_READ: Final = (*pages(), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md")


def _prose(path: Path) -> str:
    return _CODE.sub("", path.read_text())


def _anchors(path: Path) -> set[str]:
    found: set[str] = set()
    for heading in _HEADING.findall(_prose(path)):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        found.add(slugify(plain, "-"))
    return found


def _leads_nowhere(page: Path, link: str) -> bool:
    if link.startswith(("https://", "http://")):
        return False
    target, _, anchor = link.partition("#")
    there = (page.parent / target).resolve() if target else page
    if not there.exists():
        return True
    return bool(anchor) and anchor not in _anchors(there)


@pytest.mark.parametrize("path", _READ, ids=name_of)
def test_links_lead_somewhere(path: Path):
    """To a file that is there, and to a heading that it has."""
    assert [link for link in _LINK.findall(_prose(path)) if _leads_nowhere(path, link)] == []


@pytest.mark.parametrize("path", _READ, ids=name_of)
def test_files_that_are_named_exist(path: Path):
    """What a sentence names as a file of the repository is there."""
    named = re.findall(r"`((?:config|docs|bench|image|tests|appliance)/[\w./-]+)`", _prose(path))
    assert [
        each for each in named if not ((ROOT / each).exists() or (ROOT / "appliance" / each).exists())
    ] == []


def test_every_page_is_reached_from_readme():
    """A page that README does not lead to, by other pages if need be, is read by nobody."""
    seen: set[Path] = set()
    left = [ROOT / "README.md"]
    while left:
        page = left.pop()
        seen.add(page)
        targets = (link.partition("#")[0] for link in _LINK.findall(_prose(page)) if "://" not in link)
        found = {(page.parent / each).resolve() for each in targets if each.endswith(".md")}
        left += found - seen
    assert [name_of(each) for each in pages() if each not in seen] == []
