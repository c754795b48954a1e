"""Variables: what is replaced by what, and where."""

import pytest

from appliance.translation.keepalived.syntax.located_text import LineError, LocatedText
from appliance.translation.keepalived.syntax.variables import LONGEST_LINE, Variables, definition

pytestmark = pytest.mark.pure


def line(text: str) -> LocatedText:
    """Return a text as a line of /etc/k/a.conf."""
    return LocatedText.of_line(text, source="/etc/k/a.conf", line=1)


def variables(**values: str) -> Variables:
    """Return variables of a host `lb1`, with ROLE in its environment."""
    found = Variables(config_id="lb1", environment={"ROLE": "main"})
    for name, value in values.items():
        found.define(name, value)
    return found


def test_definitions():
    """A name, `=` at once, and all that follows."""
    assert definition(line("$A_1= x y")) == ("A_1", "x y")
    assert definition(line("$A=")) == ("A", "")
    assert definition(line("$A =x")) is None
    assert definition(line("$1=x")) is None
    assert definition(line("a$A=x")) is None


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("p $A", "p 1"),
        ("$A b", "1 b"),
        ("x${A}y", "x1y"),
        ("$Ay", "$Ay"),
        ("$A.y", "$A.y"),
        ("($A)", "(1)"),
        ("$A,$A", "1,1"),
        ("${NONE} $", "${NONE} $"),
        ("${A 1 2}", "${A 1 2}"),
        ("$REC", "a1"),
        ("${_PWD}/x", "/etc/k/x"),
        ("$_INSTANCE", "lb1"),
        ('"${_HASH}${_BANG}"', '"#!"'),
        ("${_ENV ROLE}", "main"),
    ],
)
def test_uses(text: str, result: str):
    """`$NAME` needs a blank, a comma, a parenthesis or the end behind it, `${NAME}` nothing."""
    found, further = variables(A="1", REC="a${A}").replaced(line(text))
    assert (found.text, further) == (result, ())


def test_values_of_several_lines():
    """They are put in only at the end of a line; what stood before goes in front of the first."""
    found = variables()
    found.define("M", "a {", "b", "}")
    first, further = found.replaced(line("x $M"))
    assert (first.text, further) == ("x a {", ("b", "}"))
    assert found.replaced(line("$M x"))[0].text == "$M x"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a $_RANDOM", "`_RANDOM` would change"),
        ("a ${_ENV HOME}", "the environment has no variable `HOME`"),
        ("a $X", "does one contain itself"),
        ("a $LONG", f"longer than {LONGEST_LINE}"),
    ],
)
def test_faults(text: str, reason: str):
    """What cannot be replaced is an error at its place."""
    with pytest.raises(LineError, match=reason):
        variables(X="${Y}", Y="${X}", LONG="l" * LONGEST_LINE).replaced(line(text))
