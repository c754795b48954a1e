"""Control lines."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.wire.lines.control import (
    Answer,
    AnswerProblem,
    ControlError,
    Question,
    as_values,
    bad,
    decode_answer,
    decode_question,
    encode_answer,
    encode_question,
    good,
)
from appliance.wire.lines.line_buffer import LineBuffer

pytestmark = pytest.mark.pure

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
PROBLEMS = st.builds(
    AnswerProblem,
    message=st.text(max_size=20),
    path=st.none() | st.text(max_size=20),
    line=st.none() | st.integers(1, 10**6),
    column=st.none() | st.integers(1, 10**6),
)


def values_without(*names: str) -> st.SearchStrategy[dict[str, object]]:
    """Return JSON objects that lack `names`."""
    return st.dictionaries(st.text(max_size=5).filter(lambda key: key not in names), JSON, max_size=3)


@given(st.text(max_size=10), values_without("command"))
def test_a_question_comes_back(command: str, values: dict[str, object]):
    """Every question comes back as it was, on one line."""
    question = Question(command=command, values=values)
    line = encode_question(question)
    assert line.index(b"\n") == len(line) - 1
    assert decode_question(line) == question


@given(values_without("ok", "errors"))
def test_a_good_answer_comes_back(values: dict[str, object]):
    """An answer without errors comes back as it was."""
    answer = good(**values)
    assert decode_answer(encode_answer(answer)) == answer == Answer(ok=True, values=values)


@given(st.lists(PROBLEMS, min_size=1, max_size=3))
def test_a_refusal_comes_back(problems: list[AnswerProblem]):
    """A refusal keeps each problem with its place."""
    answer = bad(*problems)
    assert not answer.ok
    assert decode_answer(encode_answer(answer)).errors == tuple(problems)


def test_absent_places_are_not_written():
    """A problem without a place has neither path nor line in its JSON, as DESIGN.md shows it."""
    assert encode_answer(bad("no")) == b'{"ok":false,"errors":[{"message":"no"}]}\n'


@given(st.binary(max_size=60))
def test_garbage_never_escapes(line: bytes):
    """Any bytes give a value or ControlError, both ways."""
    for decode in (decode_question, decode_answer):
        try:
            assert decode(line) is not None
        except ControlError:
            continue


NESTED = [b'{"command":' + each * 10_000 for each in (b"[", b'{"a":')]


@pytest.mark.parametrize("line", NESTED)
def test_nesting_without_end_never_escapes(line: bytes):
    """Ten thousand brackets are a ControlError, both ways."""
    for decode in (decode_question, decode_answer):
        with pytest.raises(ControlError):
            decode(line)


@pytest.mark.parametrize(
    "line", [b"", b"[]", b"{}", b'{"command": 3}', b'"reload"', b'{"command": "a"', b"\xff\xfe"]
)
def test_what_is_no_question_is_refused(line: bytes):
    """A line without a command raises ControlError."""
    with pytest.raises(ControlError):
        decode_question(line)


@pytest.mark.parametrize("line", [b"{}", b'{"ok": 1}', b'{"ok": true, "errors": [{}]}', b"nonsense"])
def test_what_is_no_answer_is_refused(line: bytes):
    """A line without a verdict, or with errors of another shape, raises ControlError."""
    with pytest.raises(ControlError):
        decode_answer(line)


def test_parameters_are_read_by_type():
    """A parameter comes out as its type; a whole number is a number too."""
    question = Question(command="drain", values={"deadline": 5, "id": "a-1", "count": 3, "wanted": True})
    assert question.number("deadline") == 5.0
    assert question.text("id") == "a-1"
    assert question.integer("count") == 3
    assert question.flag("wanted") is True
    assert question.optional_text("id") == "a-1"
    assert question.optional_text("server") is None


@pytest.mark.parametrize("value", [None, "7", 1.5, True, []])
def test_a_mistyped_parameter_is_named(value: object):
    """A parameter that is absent or of another type raises ControlError with command and key."""
    with pytest.raises(ControlError, match=r"^drain: count: "):
        Question(command="drain", values={"count": value}).integer("count")


@given(st.lists(st.binary(max_size=10).filter(lambda line: not set(line) & {10, 13}), max_size=5), st.data())
def test_lines_come_out_however_they_are_cut(lines: list[bytes], data: st.DataObject):
    """Whatever pieces a stream arrives in, the same lines come out."""
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    buffer = LineBuffer()
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [line for piece in pieces for line in buffer.feed(piece)] == lines


def test_a_carriage_return_before_the_end_is_dropped():
    """A line typed through telnet or socat's crnl is the same line."""
    assert list(LineBuffer().feed(b"reload\r\n")) == [b"reload"]


def test_a_line_without_end_is_refused():
    """A peer that sends more than the limit without a newline raises ControlError."""
    buffer = LineBuffer(limit=10)
    assert list(buffer.feed(b"0123456789")) == []
    with pytest.raises(ControlError):
        list(buffer.feed(b"a"))


def test_a_line_that_comes_byte_by_byte_costs_what_its_bytes_cost():
    """Sixteen times as many pieces take about sixteen times as long, and not their square."""

    def seconds(pieces: int) -> float:
        buffer, begun = LineBuffer(), time.thread_time()
        for _ in range(pieces):
            assert list(buffer.feed(b"0123456789abcdef")) == []
        assert buffer.unfinished
        (line,) = buffer.feed(b"\n")
        assert (len(line), buffer.unfinished) == (16 * pieces, False)
        return time.thread_time() - begun

    few = min(seconds(4000) for _ in range(3))
    assert seconds(64_000) < 80 * few


def test_plain_problems():
    """A problem is shown with what it has, and nothing else."""
    found = [AnswerProblem(message="no"), AnswerProblem(message="bad", path="api", line=3, column=7)]
    assert as_values(found) == [{"message": "no"}, {"message": "bad", "path": "api", "line": 3, "column": 7}]


def test_places():
    """Hosts with ports, none where none were given, and an error where they are something else."""
    given = Question(command="drain", values={"linger": [["::", 443]], "wrong": [["::"]]})
    assert given.places("linger") == {("::", 443)}
    assert given.places("other") == frozenset()
    with pytest.raises(ControlError, match="drain: wrong"):
        given.places("wrong")


def test_several_integers_are_read():
    """What is no list of them is an error of the question."""
    assert Question(command="move", values={"workers": [0, 2]}).integers("workers") == (0, 2)
    with pytest.raises(ControlError, match="move: workers"):
        Question(command="move", values={"workers": 2}).integers("workers")
