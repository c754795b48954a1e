"""Whatever a file says: each line that is not empty has an outcome, and each place is in the file."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.run.tiers import examples
from support.translation.haproxy_files import NO_FILES

from appliance.model.document.tree import Node, plain
from appliance.model.messages.problems import FilePosition
from appliance.translation.haproxy.directives.global_table import GLOBAL
from appliance.translation.haproxy.directives.proxy_table import PROXY
from appliance.translation.haproxy.directives.sections import OTHERS
from appliance.translation.haproxy.directives.servers import KEYWORDS
from appliance.translation.haproxy.reader import translate
from appliance.translation.translation import HttpSections, Outcome, Translation

pytestmark = pytest.mark.pure

WORDS = (
    *sorted({word for name in (*PROXY, *GLOBAL, *OTHERS, *KEYWORDS) for word in name.split()}),
    *(
        "defaults",
        "frontend",
        "backend",
        "listen",
        "global",
        "from",
        "no",
        "if",
        "unless",
        "{",
        "}",
        "or",
        "!",
    ),
    *("a", "b", "src", "nbsrv(b)", "lt", "1", "0", "5s", "1m\\ ", "*:80", ":::443", "10.0.0.1:6443", ":6443"),
    *(
        "10.0.0.1",
        "10.0.0.1:+1",
        "[::1]:80",
        "::1:80",
        "*:1-9",
        "10.0.0.0/8",
        "/",
        "GET",
        "/x",
        "tcp",
        "http",
    ),
    *(
        "status",
        "string",
        "rstatus",
        "200-299",
        "^2..",
        "v4v6",
        "v6only",
        "Username:pass",
        '"$A"',
        '"${A-b}"',
    ),
    *(".if", ".else", ".endif", ".elif", "defined(A)", "feature(X)", "&&", "'", '"', "\\", "#", "\\x41", "é"),
)
line = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
file = st.lists(line, max_size=40).map("\n".join)


def places(node: Node) -> list[FilePosition]:
    """Return the places of a tree, of its keys too."""
    found = [node.place]
    if isinstance(node.value, dict):
        for entry in node.value.values():
            found += [entry.place, *places(entry.node)]
    elif isinstance(node.value, list):
        for item in node.value:
            found += places(item)
    return found


def assert_complete(text: str, found: Translation) -> None:
    """Assert that each line has its word, and that all places are within the text."""
    rows = text.split("\n")
    spoken = {number for number, row in enumerate(rows, 1) if row.strip() and not row.strip().startswith("#")}
    assert spoken <= {each.place.line for each in found.lines}
    for each in found.lines:
        assert (each.reason is None) is (each.outcome is Outcome.KEPT), each
    for place in (*(each.place for each in found.lines), *places(found.root)):
        assert place.source == "haproxy.cfg"
        assert 1 <= place.line <= len(rows)
        assert 1 <= place.column <= len(rows[place.line - 1]) + 1
    assert isinstance(plain(found.root), dict)


@settings(max_examples=examples(300))
@given(file, st.sampled_from(("refuse", "skip")))
def test_any_words(text: str, http: HttpSections):
    """Words of HAProxy in any order are understood or refused, line by line."""
    found = translate(text, source="haproxy.cfg", environment={"A": "1"}, read=NO_FILES, http=http)
    assert_complete(text, found)


@given(st.text(max_size=300))
def test_any_text(text: str):
    """Text that is nothing of HAProxy's is refused, line by line."""
    found = translate(text, source="haproxy.cfg", environment={}, read=NO_FILES)
    assert {each.outcome for each in found.lines} <= set(Outcome)


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes):
    """Bytes that are no text are refused where they stand."""
    translate(data, source="haproxy.cfg", environment={}, read=NO_FILES)
