"""Phrases of translated English that were replaced once, and are not to come back to what people read."""

import ast
import re
from pathlib import Path
from typing import Final

import pytest
from support.documents.pages import DOCS, ROOT, name_of

pytestmark = pytest.mark.pure

_BETTER: Final = {
    r"obey(s|ed|ing)?": "use, apply",
    r"goes? on( as before)?": "continue",
    r"(is|are|was|were) (told|said)": "is reported, sent, logged, named",
    r"hears?|(is|are) (not )?heard": "receive",
    r"somebody( else)?": "another program, process or node; an operator",
    r"at the most": "at most",
    r"again and again": "repeatedly",
    r"that is so|all the same": "nevertheless",
    r"[Ww]here there (is|are)": "if there is",
    r"likewise": "also, in the same way",
    r"anew": "again",
    r"without end": "for ever",
    r"who (asks|listens|speaks)": "the client, the program",
    r"stands? there": "is listed, exists",
    r"(of|to) one that": "name the noun",
    r"whom to": "name the noun",
    r"may everything": "may do everything",
    r"misuse": "usage error",
    r"the answer is no": "failure or refusal",
    r"cannot be said|what can be said": "cannot be expressed",
    r"with us": "here",
    r"put (it|that|this) right": "fix, correct",
    r"nobody (said|says)|(the )?said above": "unknown; name what it is",
    r"must say": "needs",
    r"else it were": "otherwise it would be",
    r"where that is said": "if its description says so",
    r"told apart|told from": "distinguished from",
    r"whose connections there are": "which node has which connections",
    r"of no use any more": "no longer works",
    r"tells? of (itself|its own)": "report",
    r"no (server|worker|status) of it": "none of its servers, workers; its status",
    r"stands? inside of": "is inside",
    r"not there any more": "no longer exists",
    r"(does|do) without it": "remove it",
    r"from nobody": "from no node",
    r"may look only": "has read access only",
}
"""What one does not write, and what one writes."""

_SOURCES: Final = sorted((ROOT / "appliance").rglob("*.py"))
_CODE: Final = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)", re.DOTALL)
_PAGES: Final = (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
_MESSAGES: Final = (
    *sorted((ROOT / "tests" / "translation" / "corpus").rglob("*.report")),
    *sorted((ROOT / "tests" / "model" / "corpus").glob("*.problems")),
)
"""What files of operators are answered with: most messages of the translation and of the configuration."""


@pytest.mark.parametrize("path", [*_PAGES, *_MESSAGES], ids=name_of)
def test_phrases_stay_away(path: Path):
    """In running text, not in code. Pages of commands, keys, events and metrics are made of the sources."""
    assert _found(path.read_text()) == {}


@pytest.mark.parametrize("folder", sorted({each.relative_to(ROOT).parts[1] for each in _SOURCES}))
def test_phrases_stay_away_from_docstrings_and_messages(folder: str):
    """In all texts of our sources with two words or more: docstrings, messages, help and more."""
    found = {
        f"{path.relative_to(ROOT)}:{node.lineno}: {phrase}": better
        for path in _SOURCES
        if path.relative_to(ROOT).parts[1] == folder
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        for phrase, better in _found(node.value).items()
    }
    assert found == {}


def _found(text: str) -> dict[str, str]:
    plain = re.sub(r"\s+", " ", _CODE.sub(" ", text))
    return {
        match[0]: better
        for phrase, better in _BETTER.items()
        for match in re.finditer(rf"\b({phrase})\b", plain)
    }
