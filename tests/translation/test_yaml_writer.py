"""YAML that `appliance import` prints: it reads back as what was meant, and people can read it."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.document.document import read
from appliance.model.document.tree import Node, Plain, plain
from appliance.model.document.yaml_reader import read_yaml
from appliance.model.messages.problems import FilePosition
from appliance.translation import yaml_writer
from appliance.translation.tree_builder import TreeBuilder
from appliance.translation.yaml_writer import WIDTH, write_yaml

pytestmark = pytest.mark.pure

EXAMPLE = Path(__file__).parents[2] / "config" / "appliance.example.yaml"

_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40) | st.sampled_from(
    [
        "no",
        "on",
        "1:30",
        "0x10",
        "1e3",
        "null",
        "~",
        "2001-01-01",
        ":80",
        "a:",
        "<<",
        "=",
        "- a",
        "",
        "#",
        " a ",
    ]
)
_SCALAR = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(0, 1000) | _TEXT
_VALUE: st.SearchStrategy[Plain] = st.recursive(
    _SCALAR,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(_TEXT, below, max_size=4),
    max_leaves=12,
)


def _at(line: int) -> FilePosition:
    return FilePosition(line=line, column=1, source="haproxy.cfg")


def _tree(value: Plain, line: int = 1) -> TreeBuilder:
    tree = TreeBuilder(_at(line))
    if isinstance(value, dict):
        for at, (key, each) in enumerate(value.items()):
            tree.put((key,), each, _at(line + at))
    return tree


def _no_comment(_: FilePosition) -> str:
    return ""


def _line(place: FilePosition) -> str:
    return f"{place.source}:{place.line}"


@given(st.dictionaries(_TEXT, _VALUE, max_size=5))
def test_what_is_written_reads_back_as_the_same(value: dict[str, Plain]):
    """Any mapping is the same after it was written and read, with comments or without."""
    root = _tree(value).root

    for comment in (_no_comment, _line):
        node = read_yaml(write_yaml(root, comment))

        assert node is not None
        assert plain(node) == value


@given(st.dictionaries(st.sampled_from("abc"), _TEXT, min_size=1))
def test_others_read_the_same_texts(value: dict[str, str]):
    """A reader of YAML 1.1 takes no text for a switch, a number or a date."""
    text = write_yaml(_tree(dict(value)).root, _no_comment)

    expected = {key: each for key, each in value.items() if max(map(ord, each), default=0) < 0x10000}
    found = yaml.safe_load(text)
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize("text", ["2001-99-99", "9" * 5000, "0o17", "1_000", "12:30:00"])
def test_what_looks_like_something_else_is_quoted(text: str):
    """A date that there is not, a number without end: no reader stumbles over it."""
    written = write_yaml(_tree({"a": text}).root, _no_comment)

    assert written == f'a: "{text}"\n'
    assert plain(read(written).root) == yaml.safe_load(written) == {"a": text}


def test_the_example_reads_back_as_the_same():
    """The whole of the documentation's example is the same after it was written and read."""
    document = read(EXAMPLE.read_bytes())

    assert plain(read(write_yaml(document.root, _line)).root) == document.value


def test_what_came_from_one_line_stands_on_one_line():
    """A server is one line, with the line of haproxy.cfg that it came from."""
    tree = TreeBuilder(_at(1))
    tree.put(("pools", "masters", "balance"), "source", _at(3))
    tree.put(("pools", "masters", "servers", "a"), {"address": "10.0.0.1:6443", "weight": 5}, _at(4))
    tree.append(("api", "frontends", "main", "bind"), "[::]:6443", _at(7))
    tree.append(("api", "frontends", "main", "bind"), "10.0.0.1:6443", _at(8))

    assert write_yaml(tree.root, _line) == (
        "pools:\n"
        "  masters:\n"
        "    balance: source                                       # haproxy.cfg:3\n"
        "    servers:\n"
        "      a: {address: 10.0.0.1:6443, weight: 5}              # haproxy.cfg:4\n"
        "\n"
        "api:\n"
        "  frontends:\n"
        "    main:\n"
        "      bind:\n"
        '        - "[::]:6443"                                     # haproxy.cfg:7\n'
        "        - 10.0.0.1:6443                                   # haproxy.cfg:8\n"
    )


def test_what_is_too_long_is_spread_over_several_lines():
    """A list that does not fit on a line has a line for each item."""
    tree = TreeBuilder(_at(1))
    tree.put(("allow",), [f"10.0.{at}.0/24" for at in range(12)], _at(1))

    lines = write_yaml(tree.root, _no_comment).splitlines()

    assert len(lines) == 13
    assert max(map(len, lines)) <= WIDTH


def test_nothing_is_an_empty_mapping():
    """A configuration that says nothing is `{}`, which is one; a list is none."""
    assert write_yaml(TreeBuilder(_at(1)).root, _no_comment) == "{}\n"
    with pytest.raises(TypeError, match="mapping"):
        write_yaml(Node(place=_at(1), value=[]), _no_comment)


def test_a_word_is_looked_at_once(monkeypatch: pytest.MonkeyPatch):
    """Hundreds of servers have the same keys and words: whether one needs quotes is found out once."""
    looked: list[str] = []

    def counted(text: str) -> Node | None:
        looked.append(text)
        return read_yaml(text)

    monkeypatch.setattr(yaml_writer, "read_yaml", counted)
    tree = TreeBuilder(FilePosition(line=1, column=1))
    for number in range(50):
        tree.put((f"once-{number}", "looked-at"), "this-word", FilePosition(line=number + 1, column=1))
    write_yaml(tree.root, lambda _: "")

    assert looked.count("this-word") == 1
    assert looked.count("looked-at") == 1
