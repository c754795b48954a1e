"""`~SEQ` and `~LST`: the examples of keepalived.conf(5), and what is wrong with others."""

import pytest

from appliance.translation.keepalived.syntax.located_text import LineError, LocatedText
from appliance.translation.keepalived.syntax.repetitions import repetition

pytestmark = pytest.mark.pure


def values(text: str) -> list[str]:
    """Return the values of a repetition, those of one time joined by a comma."""
    found = repetition(LocatedText.of_line(text, source="f", line=1))
    assert found.line.text == "x"
    return [",".join(value for _, value in each) for each in found.values]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("~SEQ(N, 0, 3) x", ["0", "1", "2", "3"]),
        ("~SEQ(N,3) x", ["1", "2", "3"]),
        ("~SEQ(N,-3) x", ["-1", "-2", "-3"]),
        ("~SEQ(N,3,1) x", ["3", "2", "1"]),
        ("~SEQ(N, 1, 2, 6) x", ["1", "3", "5"]),
        ("~SEQx(N, 0x90, 0x10, 0xb0) x", ["90", "a0", "b0"]),
        ("~LST(N, a, b) x", ["a", "b"]),
        ("~LST({A, B}, {10,1},{20,4}) x", ["10,1", "20,4"]),
    ],
)
def test_values(text: str, wanted: list[str]):
    """Each time the line is read the variable has the next value."""
    assert values(text) == wanted


def test_names():
    """Several variables change together."""
    found = repetition(LocatedText.of_line("~LST({A,B},{1,2}) x", source="f", line=1))
    assert found.values == ((("A", "1"), ("B", "2")),)


@pytest.mark.parametrize(
    "text",
    [
        "~x",
        "~SEQ(N) x",
        "~SEQ(N,a) x",
        "~SEQ(N,1,2,3,4) x",
        "~SEQ(N,1,0,3) x",
        "~SEQ(N,1,-1,3) x",
        "~SEQ(N,1,5000) x",
        "~SEQx(N,-1) x",
        "~SEQ(N,1,${M}) x",
        "~LST(N) x",
        "~LST() x",
        "~LST(N, a b) x",
        "~LST({A,B},{1}) x",
        "~LST({A,1},{1,2}) x",
    ],
)
def test_faults(text: str):
    """What keepalived cannot repeat is an error."""
    with pytest.raises(LineError):
        repetition(LocatedText.of_line(text, source="f", line=1))
