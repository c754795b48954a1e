"""Hook of mkdocs: pages that are outside of docs/, such as README and CHANGELOG, are in the site too.

A link of theirs, or to them, leads to the page in the site. One to another file of the repository, a manifest
say, has no page to lead to: its text is left.
"""

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

OUTSIDE: Final[Mapping[str, str]] = {
    "image/README.md": "image.md",
    "image/monitoring/README.md": "alerts.md",
    "bench/README.md": "measurements.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "policy.md",
    "README.md": "readme.md",
}
"""Files of the repository by the pages that they are."""

_ROOT: Final = Path(__file__).parents[1]
_LINK: Final = re.compile(r"(!?)\[([^]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for path, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(_ROOT / path).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001  # mkdocs' signature
    """Have each link lead to where its file is in the site."""
    return led(markdown, page=page.file.src_uri)


def led(markdown: str, *, page: str) -> str:
    """Return the text of a page with its links as they are in the site."""
    sources = {name: path for path, name in OUTSIDE.items()}
    source = sources.get(page, f"docs/{page}")

    def link(found: re.Match[str]) -> str:
        picture, text, target, anchor = found.groups(default="")
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path not in OUTSIDE and not path.startswith("docs/"):
            return text if (_ROOT / path).exists() else found[0]
        there = OUTSIDE.get(path, path.removeprefix("docs/"))
        back = posixpath.relpath(there, posixpath.dirname(page) or ".")
        return f"{picture}[{text}]({back}{anchor})"

    return _LINK.sub(link, markdown)
