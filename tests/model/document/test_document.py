"""`model.document.document` and its two readers: values, places, and one error for what cannot be read."""

import json
from contextlib import suppress

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.run.tiers import examples

from appliance.model.document.document import read
from appliance.model.document.tree import DEPTH_LIMIT, DocumentError
from appliance.model.document.yaml_reader import NODE_LIMIT
from appliance.model.messages.problems import FilePosition, Finding, FindingTarget

pytestmark = pytest.mark.pure

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text()
VALUES = st.recursive(
    SCALARS, lambda below: st.lists(below) | st.dictionaries(st.text(), below), max_leaves=8
)
NESTED_TEXT = st.recursive(
    st.text(),
    lambda below: st.lists(below, min_size=1) | st.dictionaries(st.text(), below, min_size=1),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(st.text(), VALUES)
YAML_LIKE = st.text("ab:- \n\t{}[],\"'&*!|>%@`#?0\\x\ufeff\x85\u2028", max_size=60)


def _error(text: str | bytes) -> tuple[int, int, str]:
    with pytest.raises(DocumentError) as caught:
        read(text)
    return caught.value.place.line, caught.value.place.column, caught.value.message


@settings(max_examples=examples(30))  # PyYAML is slow
@given(document=DOCUMENTS, indent=st.sampled_from([None, 2, "\t"]), ascii_only=st.booleans())
@example(document={"\u2028": "\x85\x7f\U0001f600"}, indent=None, ascii_only=False)
@example(document={"k" * 2000: ["\U0001f600"]}, indent="\t", ascii_only=True)
def test_json_gives_what_json_gives(document: dict, indent: int | str | None, *, ascii_only: bool):
    """A JSON document, however it is laid out, means what it means to a JSON reader."""
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)

    assert read(text).value == json.loads(text)


@settings(max_examples=examples(30))  # PyYAML is slow
@given(st.dictionaries(st.text(min_size=1), NESTED_TEXT, min_size=1))
def test_yaml_gives_what_was_dumped(document: dict):
    """What PyYAML writes in block style, its texts in quotes, is read back."""
    assert read(yaml.safe_dump(document, default_style='"', default_flow_style=False)).value == document


@given(st.binary(max_size=200) | st.text().map(str.encode) | YAML_LIKE.map(str.encode))
@example(b'a: "\\UFFFFFFFF"')
@example(b'{"a": "\\ud800"}')
@example(b"a: " + b"9" * 5000)
@example(b"a: " + b"[" * 5000)
def test_garbage_never_escapes(data: bytes):
    """Any bytes give a mapping or DocumentError."""
    with suppress(DocumentError):
        assert isinstance(read(data).value, dict)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("off", "off"),
        ("~", None),
        ("", None),
        ("null", None),
        ("10", 10),
        ("-3", -3),
        ("010", 10),
        ("0x10", "0x10"),
        ("0o17", "0o17"),
        ("1_000", "1_000"),
        ("12:30:00", "12:30:00"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        (".inf", ".inf"),
        ("2026-11-21", "2026-11-21"),
        ("'5'", "5"),
        ('"true"', "true"),
        ("|\n  two\n  lines", "two\nlines"),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ("10.0.0.1:80", "10.0.0.1:80"),
    ],
)
def test_plain_values_have_no_surprises(text: str, value: object):
    """Only decimal numbers are numbers, only true and false are booleans, the rest is text."""
    assert read(f"key: {text}").value == {"key": value}


def test_keys_are_text_as_written():
    """A key that looks like a number or a boolean is the text that stands there."""
    assert read("1: a\ntrue: b\n'x': c").value == {"1": "a", "true": "b", "x": "c"}


def test_an_alias_is_what_it_names():
    """An anchored value can be used again."""
    assert read("a: &check {type: tcp}\nb: *check").value == {"a": {"type": "tcp"}, "b": {"type": "tcp"}}


def test_a_byte_order_mark_is_nothing():
    """Editors that mark UTF-8 do no harm, in YAML and in JSON."""
    assert (read(b"\xef\xbb\xbfa: 1").value, read(b'\xef\xbb\xbf{"a": 1}').value) == ({"a": 1}, {"a": 1})


@pytest.mark.parametrize("text", ['{"a": [], "b": {}}', '{\t"a"\t:\t[ ]\r\n,"b":{ } }\n', "{a: [], 'b': {}}"])
def test_empty_lists_and_mappings(text: str):
    """Nothing between brackets is an empty list, between braces an empty mapping; flow YAML is not JSON."""
    assert read(text).value == {"a": [], "b": {}}


BOMB = "a: &a [x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "the file is empty"),
        ("# nothing\n---\n", 1, 1, "the file is empty"),
        ("- a", 1, 1, "the file must hold a mapping (`pools: ...`), not a list"),
        ("text", 1, 1, "the file must hold a mapping (`pools: ...`), not `text`"),
        (b"a: 1\nb: \xff", 2, 4, "not UTF-8: the byte 0xff"),
        ("a: 1\nb: \x07", 2, 4, "the character U+0007 is not allowed"),
        ("a: 1\na: 2", 2, 1, "`a` is given twice: the first is on line 1"),
        ('{"a": 1,\n "a": 2}', 2, 2, "`a` is given twice: the first is on line 1"),
        ("a: b\n---\nc: d", 2, 1, "a second document"),
        ("a: &x [*x]", 1, 8, "this alias is inside the value that it repeats"),
        ("a: *x", 1, 4, "this alias names nothing before it"),
        (BOMB, 6, 44, f"more than {NODE_LIMIT} values, aliases counted by the values that they repeat"),
        ("a: !!str 5", 1, 4, "a tag is not supported"),
        ("!!str a: 5", 1, 1, "a key must be plain text"),
        ("<<: {a: 1}", 1, 1, "merge keys (`<<`) are not supported: write the keys out"),
        ("? [a]\n: b", 1, 3, "a key must be plain text"),
        ("a:\n\t- b", 2, 1, "not YAML: a tab: YAML is indented with spaces"),
        ("a: b: c", 1, 5, "not YAML: a `: ` out of place"),
        ("a: 1\nb\nc: 2", 2, 1, "not YAML: a key without its `:`"),
        ("bind: [[::]:80]", 1, 8, "a key must be plain text: an address such as `[::]:80` needs quotes"),
        ("bind: [::]:80", 1, 8, "not YAML: a value expected: text that begins with `[`, `:` or `*` needs"),
        ("a: @b", 1, 4, "not YAML: found character '@' that cannot start any token"),
        ('a: "\\UFFFFFFFF"', 1, 7, "an escape of a character that does not exist"),
        ('a: "\\ud800"', 1, 4, "an escape of half a character (a lone surrogate)"),
        ('{"a": "\\ud800"}', 1, 7, "an escape of half a character (a lone surrogate)"),
        ("a: " + "9" * 5000, 1, 4, "this number is too long"),
        ('{"a": ' + "9" * 5000 + "}", 1, 7, "this number is too long"),
        ("a: " + "[" * 100, 1, 4 + DEPTH_LIMIT, f"nested deeper than {DEPTH_LIMIT} levels"),
        ('{"a": ' + "[" * 100, 1, 7 + DEPTH_LIMIT, f"nested deeper than {DEPTH_LIMIT} levels"),
        ('{"a":\n\t"b', 2, 2, "Unterminated string starting at"),
        ('{"a":\n\t1 2}', 2, 4, "`,` or `}` expected"),
        ('{"a":\n\t[1 2]}', 2, 5, "`,` or `]` expected"),
        ('{"a"\n\t 1}', 2, 3, "`:` expected"),
        ('{\t"a": 1} x', 1, 11, "more text after the end of the JSON value"),
        ('{\t"a": nil}', 1, 8, "Expecting value"),
        ('{\t"a": +1}', 1, 8, "a JSON value expected"),
        ('{\t"a": 1,\n 5: 6}', 2, 2, "a key in quotes expected"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_one_error(text: str | bytes, line: int, column: int, message: str):
    """Text that is no document is told where, and what is wrong there."""
    found = _error(text)

    assert (found[:2], found[2][: len(message)]) == ((line, column), message)


FLOW = read('{"a": [1, {"b": 2}],\n "c": {}}')
BLOCK = read("a:\n  - 1\n  - b: 2\nc:\n  d: e\n")


@pytest.mark.parametrize(
    ("path", "flow", "block"),
    [
        ((), (1, 1), (1, 1)),
        (("a",), (1, 7), (2, 3)),
        (("a", 0), (1, 8), (2, 5)),
        (("a", 1), (1, 11), (3, 5)),
        (("a", 1, "b"), (1, 17), (3, 8)),
        (("c",), (2, 2), (4, 1)),
        (("c", "absent"), (2, 2), (4, 1)),
        (("a", 5), (1, 2), (1, 1)),
        (("a", 0, "deep", 1), (1, 8), (2, 5)),
    ],
)
def test_places(path: tuple, flow: tuple[int, int], block: tuple[int, int]):
    """A value is where it begins, a mapping at its key, what is absent at its nearest parent's key."""
    wanted = [FilePosition(line=line, column=column) for line, column in (flow, block)]

    assert [FLOW.place(path), BLOCK.place(path)] == wanted


def test_a_key_that_was_taken_for_another_is_told_as_written():
    """Values are found under the key that was meant, problems there name what stands in the file."""
    document = BLOCK.respelt({("c",): "f"}).respelt({("f", "d"): "g"})
    problem = document.problem(Finding(path=("f", "g", "deep"), message="wrong"), source="a.yaml")

    assert document.value == {"a": [1, {"b": 2}], "f": {"g": "e"}}
    assert str(problem) == "a.yaml:5:3: c.d.deep: wrong"


@pytest.mark.parametrize(("path", "there"), [((), True), (("a", 1, "b"), True), (("a", 2), False)])
def test_what_is_there(path: tuple, *, there: bool):
    """A path of keys and indices leads to something or to nothing."""
    assert BLOCK.has(path) is there


def test_one_section_is_read_without_the_others():
    """The keys of the top level, and the value of one; there is none for a key that is not there."""
    document = read("source: {haproxy: [1]}\npools: 2\n")
    assert list(document.keys) == ["source", "pools"]
    assert [document.section(key) for key in ("source", "pools", "api")] == [{"haproxy": [1]}, 2, None]


def test_places_of_keys():
    """A key can be asked for by itself."""
    assert BLOCK.place(("c", "d"), FindingTarget.KEY) == FilePosition(line=5, column=3)
