"""Files with conditions, variables, sequences and includes, read as statements."""

import pytest
from support.translation.keepalived_files import PATH, Files

from appliance.translation.keepalived.ledger import Ledger
from appliance.translation.keepalived.syntax.statements import (
    DEEPEST_INCLUDE,
    MOST_BYTES,
    MOST_FILES,
    MOST_STATEMENTS,
    Statements,
    Surroundings,
)
from appliance.translation.translation import LineOutcome, Outcome

pytestmark = pytest.mark.pure


def read(text: str, **files: str | OSError) -> tuple[list[str], list[LineOutcome]]:
    """Return the statements of a file on the host lb1, and its lines that are not kept."""
    machine = Files({PATH: text, **{f"/etc/keepalived/{name}": each for name, each in files.items()}})
    ledger = Ledger()
    around = Surroundings(read=machine.read, matching=machine.matching, config_id="lb1", environment={})
    found = [" ".join(word.text for word in each) for each in Statements(around, ledger).of_file(PATH)]
    return found, [each for each in ledger.outcomes if each.outcome is not Outcome.KEPT]


def reasons(text: str, **files: str | OSError) -> list[str]:
    """Return why lines are not kept."""
    return [f"{each.place.line}:{each.place.column} {each.reason}" for each in read(text, **files)[1]]


def statements(text: str, **files: str | OSError) -> list[str]:
    """Return the statements of a file all of whose lines are kept."""
    found, others = read(text, **files)
    assert others == []
    return found


def test_braces_and_lines():
    """Braces are statements of their own, wherever they stand."""
    assert statements("\ufeff# x\r\na { b\r\n}") == ["a", "{", "b", "}"]
    assert statements("a {\n b }\nc\n{\n}\n d{e}") == [*"a{b}", "c", "{", "}", "d", "{", "e", "}"]


def test_conditions():
    """A line holds for the host that it names, or for all others."""
    found, others = read("@lb1 a\n@lb2 b\n@^lb1 c\n@^lb2 d\n@lb1\n{ @lb2 e\n  @lb1\tf { g }\n")
    assert found == ["a", "d", "{", "f", "{", "g", "}"]
    assert [(each.place.line, each.place.column, each.outcome) for each in others] == [
        (2, 1, Outcome.IGNORED),
        (3, 1, Outcome.IGNORED),
        (5, 1, Outcome.IGNORED),
        (6, 3, Outcome.IGNORED),
    ]
    assert others[0].reason == "is for `lb2`, and this host is `lb1`"
    assert others[1].reason == "is for all but `lb1`, and this host is `lb1`"


def test_variables():
    """The value is put in when it is used, and may bring a condition, a sequence or a comment."""
    text = (
        "$A=1\np $A\n$A=2\np ${A}0\n$IF=@lb1\n$IF p 3\n$S=~SEQ(N,2) q$N\n$S\n$B=\np $B.\n$H=\\#\nx ${H}y z\n"
    )
    assert statements(text) == ["p 1", "p 20", "p 3", "q1", "q2", "p $B.", "x"]
    assert statements('p "$NONE ${NONE}"') == ["p $NONE ${NONE}"]
    assert reasons("p ${NONE}") == ["1:3 the variable `NONE` is not defined"]


def test_values_of_several_lines():
    """The lines of a value are read one by one; a line without a backslash, or an empty one, ends it."""
    text = "$V= \\\n  v $N { \\\n\tw \\\n}\nx\n$N=1\n$V\n$N=2\n${V}\n$E= \\\n\ny\n"
    assert statements(text) == ["x", "v 1", "{", "w", "}", "v 2", "{", "w", "}", "y"]
    assert statements("$V=a \\\nb") == []
    assert statements("$V=a \\\n# no\n  \nb\n$V\n$W=x \\\n\nc") == ["a", "b", "c"]
    assert statements("$V=a \\\nb\n$W=\\\n$V \\\nc\n$W") == ["a", "b", "c"]
    assert reasons('$V=a \\\n"b\nc \\') == [
        "2:1 this quote is not closed on its line",
        "3:3 ends with `\\`, but a line continues on the next one only in the value of a variable",
    ]


def test_sequences():
    """A line is read once for each value, and sequences may follow each other."""
    assert statements("~SEQ(A,1,2) ~LST(B,x,y) p${A}$B { q }") == [
        *("p1x", "{", "q", "}", "p1y", "{", "q", "}"),
        *("p2x", "{", "q", "}", "p2y", "{", "q", "}"),
    ]
    assert reasons("~SEQ(A) p")[0].startswith("1:1 begins with `~`, which must be")
    assert "does one contain itself" in reasons("$A=~SEQ(N,2) $A\n$A")[0]
    assert statements("~SEQ(A,2)") == []


def test_includes():
    """Files are read where they are included; paths begin at the including file."""
    files = {"a.conf": "a1\ninclude sub/*.conf\na2\n", "sub/c.conf": "c\n", "sub/b.conf": "$X=9\nb"}
    assert statements("x\ninclude a.conf\ny $X\n", **files) == ["x", "a1", "b", "c", "a2", "y 9"]
    assert statements("@lb1 include a.conf", **{"a.conf": "a"}) == ["a"]
    assert statements("include {a,b}.conf", **{"a.conf": "a", "b.conf": "b"}) == ["a", "b"]
    assert statements("include a.conf", **{"a.conf": IsADirectoryError(21, "Is a directory")}) == []
    assert statements("include") == ["include"]


def test_includes_that_fail():
    """A file that is not there or cannot be read is refused, a pattern without files ignored."""
    found, others = read("include a.conf\ninclude none.d/*\ny", **{"a.conf": PermissionError(13, "No way")})
    assert found == ["y"]
    assert [(each.outcome, each.reason) for each in others] == [
        (Outcome.REFUSED, "`/etc/keepalived/a.conf` cannot be read: No way"),
        (Outcome.IGNORED, "no file matches"),
    ]
    assert "cannot be read: too large" in reasons("include a", a=OSError("too large"))[0]


def test_includes_without_end():
    """A file that includes itself is refused, and so is a chain that is too long."""
    assert reasons("include a", a="include b", b="include a") == ["1:1 `/etc/keepalived/a` includes itself"]
    chain = {f"f{number}": f"include f{number + 1}" for number in range(20)}
    assert reasons("include f0", **chain) == [f"1:1 is nested {DEEPEST_INCLUDE + 1} includes deep"]


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("#" * (MOST_BYTES + 1), {}),
        ("include f*", {f"f{number}": "" for number in range(MOST_FILES + 1)}),
        ("a\n" * (MOST_STATEMENTS + 1), {}),
        ("~SEQ(A,1000) ~SEQ(B,1000) x", {}),
    ],
)
def test_bounds(text: str, files: dict[str, str]):
    """Files that no person wrote are refused as a whole, and nobody waits for them."""
    (only,) = (each for each in reasons(text, **files) if "the rest is not read" in each)
    assert only.startswith("1:1 ")


def test_file_that_cannot_be_read():
    """That of the first file is the caller's problem."""
    ledger = Ledger()
    machine = Files({})
    around = Surroundings(read=machine.read, matching=machine.matching, config_id="lb1", environment={})
    with pytest.raises(FileNotFoundError):
        list(Statements(around, ledger).of_file("/nowhere"))


def test_secrets_are_not_shown():
    """The text of a line is printable, short, and has no password."""
    machine = Files({PATH: "x { auth_pass  hidden\na\x1b[31m\t" + "b" * 300})
    ledger = Ledger()
    around = Surroundings(read=machine.read, matching=machine.matching, config_id="lb1", environment={})
    assert list(Statements(around, ledger).of_file(PATH))
    first, second = (each.text for each in ledger.outcomes)
    assert first == "x { auth_pass ***"
    assert second.startswith("a\\x1b[31m bbb")
    assert len(second) < 300
