"""Our reader and Debian's keepalived split the same files into the same statements.

keepalived tells the first word of each statement that it does not know: in a file of unknown words, of all.
"""

import random
from pathlib import Path
from typing import Final

import pytest
from support.vrrp.keepalived_dump import first_words

from appliance.translation.keepalived.ledger import Ledger
from appliance.translation.keepalived.syntax.statements import Statements, Surroundings
from appliance.translation.translation import Outcome

pytestmark = [pytest.mark.programs, pytest.mark.needs("keepalived")]

SNIPPETS: Final = {
    "quotes": r"""
"a b"c d
'x y' z
w"q r"s
a\ b
"tab\there" x
"" x
"eight{nine"
""",
    "comments": r"""
a # b
! c
  # d
e!f
"g#h!i" j
k\#l\!m # n
o \ p # q
""",
    "braces": """
one { two } three
four
{
five }
six{seven
}
{ eight
}
""",
    "conditions": """
@lb1 yes1
@^lb1 no1
@lb2 no2
@^lb2 yes2
@lb1
  @lb1\tyes3
@lb1 @lb1 odd
{ @lb2 no3
}
""",
    "variables": r"""
$FOO=bar
z$FOO q
${FOO}zz
z${FOO}zz q
$FOO q
$FOO.q
$FOO,q
$E=
l${E}l
$X=${Y}
$Y=1
rec$X
$Y=2
rec$X
$C=@lb2
$C no
k\!l$Y
"a${_BANG}b" x
m ${_HASH} n
in${_INSTANCE}
$FOO=new
${FOO}
""",
    "several lines": r"""
$M= \
m1 a \
  m2 { b \
\
 m3 # c \
}
after
$M
w$M
$M x
$N=\

next
$O=o \
# within
last
$O
""",
    "sequences": """
~SEQ(A, 1, 3) s${A} x
~SEQ(B,3) t$B
~SEQ(C, 6, -2, 1) u${C}
~SEQx(D, 0x8, 4, 0x10) v${D}
~LST(E, a, b) w${E}
~LST({F,G}, {1,2},{3,4}) x${F}${G}
~SEQ(H,1,2) ~LST(I,k,l) y${H}${I} { z }
""",
    "includes": """
a
include part.conf
$P=part
include ${P}.conf
@lb1 include p*.conf
@lb2 include part.conf
b $SAID
""",
}
PART: Final = "in1\n$SAID=word\nin2 { x }\n"
TOKENS: Final = (
    *("a", "bb", '"', "'", "\\", "#", "!", "{", "}", " ", "\t", "  ", '"q r"', ",", ")", "=", "_"),
    *("$", "${A}", "$A", "$A ", "$B", "${B}", "$A=", "$B=x y", "$A=1", "$C=\\\n", "\\\n", "$C", "${C}"),
    *("@lb1 ", "@^lb1 ", "@lb2 ", "~SEQ(n,1,3) ", "${n}", "~LST(m,u,v) ", "${m}", "${_HASH}", "${_BANG}"),
)


def ours(path: Path) -> tuple[list[tuple[int, str]], bool]:
    """Return line and first word of all statements, and whether all lines of the file are understood."""
    ledger = Ledger()
    around = Surroundings(
        read=lambda name: Path(name).read_bytes(),
        matching=lambda pattern: [str(each) for each in path.parent.glob(Path(pattern).name)],
        config_id="lb1",
        environment={},
    )
    found = [(each[0].place.line, each[0].text) for each in Statements(around, ledger).of_file(str(path))]
    return found, all(each.outcome is not Outcome.REFUSED for each in ledger.outcomes)


@pytest.mark.parametrize("text", SNIPPETS.values(), ids=SNIPPETS)
def test_same_statements(tmp_path: Path, text: str):
    """What keepalived.conf(5) promises, and what it does not say."""
    path = tmp_path / "k.conf"
    path.write_text(text)
    (tmp_path / "part.conf").write_text(PART)
    found, complete = ours(path)
    assert complete
    assert found == first_words(path, config_id="lb1")
    assert found


def test_same_statements_of_any_file(tmp_path: Path):
    """Files of random pieces that we understand are understood alike."""
    chance = random.Random(20)  # noqa: S311  # the same files each time
    path = tmp_path / "k.conf"
    compared = 0
    while compared < 40:
        lines = ("".join(chance.choices(TOKENS, k=chance.randint(1, 8))) for _ in range(chance.randint(1, 6)))
        path.write_text("\n".join(lines) + "\n")
        found, complete = ours(path)
        if complete and found:
            assert found == first_words(path, config_id="lb1"), path.read_text()
            compared += 1
