"""The documentation as a site: it builds without a warning, of what is here, and needs nothing else."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest
from support.documents.pages import DOCS, ROOT
from support.peers.chromium import Chromium

pytestmark = pytest.mark.programs

_NO_NETWORK: Final = {
    "NO_MKDOCS_2_WARNING": "1",
    "http_proxy": "http://127.0.0.1:9",
    "https_proxy": "http://127.0.0.1:9",
}
_FETCHED: Final = {"src", "srcset", "poster", "data", "action"}


class _Fetches(HTMLParser):
    """Collects what a browser fetches by itself, and where links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in _FETCHED or (tag == "link" and name == "href"):
                self.fetched.append(value or "")
            elif name == "href":
                self.links.append(value or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as `make docs` builds it."""
    built = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", built],
        cwd=ROOT, env={**os.environ, **_NO_NETWORK}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return built


def test_every_page_is_in_it(site: Path):
    """Each page of docs/, whose first one is index, and those from elsewhere."""
    pages = [str(each.relative_to(DOCS).with_suffix(".html")) for each in DOCS.rglob("*.md")]
    outside = [
        "readme.html",
        "policy.html",
        "image.html",
        "measurements.html",
        "changelog.html",
        "contributing.html",
    ]
    assert [each for each in (*pages, *outside) if not (site / each).exists()] == []


_PICTURES: Final = 3


@pytest.mark.promise("docs/index.md", "the front page shows it, and leads to every page")
def test_the_front_page_leads_to_every_page(site: Path):
    """It has three pictures, five ways to use it, and a link to each page that no menu is needed for."""
    text = (DOCS / "index.md").read_text()
    assert text.count("![") == _PICTURES
    ways = text.partition("## Five ways")[2].partition("\n## ")[0]
    assert len([line for line in ways.splitlines() if line.startswith("| ")]) == 1 + 5
    links = set(re.findall(r"\]\(([a-z0-9/.-]+\.md)", text))
    reached = {"reference/metrics.md", "reference/events.md", "reference/commands.md", "index.md"}
    assert {str(each.relative_to(DOCS)) for each in DOCS.rglob("*.md")} - links == reached
    assert (site / "index.html").exists()


@pytest.mark.needs("chromium")
@pytest.mark.promise("docs/index.md", "search and dark mode work from a folder")
def test_search_works_from_a_folder(site: Path):
    """Opened as files, without a server or a network: a word is found, and colours follow the system."""
    with Chromium() as browser:
        colours = []
        for dark in (False, True):
            tab = browser.tab(dark=dark)
            tab.go((site / "reference" / "commands.html").as_uri())
            colours.append(tab.value("getComputedStyle(document.body).backgroundColor"))
        tab.value("document.querySelector('.md-search__input').focus()")
        tab.call("Input.insertText", text="skew time")
        tab.until("document.querySelectorAll('.md-search-result__link').length > 0")
        found = tab.value("document.querySelector('.md-search-result__link').href")
        assert str(found).startswith(site.as_uri())
        assert [each for each in tab.complaints if "file://" not in each] == []
    assert len(set(colours)) == len(colours)


def test_nothing_is_fetched_from_elsewhere(site: Path):
    """No script, style, font or picture has another host's address."""
    found = {each for path in site.rglob("*.html") for each in _Fetches(path.read_text()).fetched}
    assert {each for each in found if re.match(r"(?:[a-z]+:)?//", each)} == set()
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert re.findall(r"(?:url\(|@import )['\"]?(?:https?:)?//[^)'\"]+", styles) == []


def test_links_lead_to_its_pages(site: Path):
    """From each page to each page and picture, as it is in the site."""
    missing = []
    for path in site.rglob("*.html"):
        if path.name == "404.html":
            continue  # its links begin at the host's root, wherever it is shown
        page = _Fetches(path.read_text())
        for link in (*page.fetched, *page.links):
            target = link.partition("#")[0].partition("?")[0]
            if target and "://" not in target and not (path.parent / target).exists():
                missing.append(f"{path.relative_to(site)}: {link}")
    assert missing == []


def test_what_makes_it_stays_out(site: Path):
    """Sources of pictures, locks and code are no part of it."""
    assert [path.name for path in site.rglob("*") if path.suffix in {".py", ".in", ".lock", ".txt"}] == []
