"""The simple commands of a shell script, with what stands around each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.translation.keepalived.commands.shell_commands import LONGEST_SCRIPT, shell_commands

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("", []),
        ("pidof haproxy", ["pidof haproxy"]),
        ("a; b && c || d | e & f", ["a", "b", "c", "d", "e", "f"]),
        ("a # not b; c\n# d\nfoo#bar", ["a", "foo#bar"]),
        ("a 'b; c' \"d & e\" \\; f", ["a 'b; c' \"d & e\" \\; f"]),
        ("a > /dev/null 2>&1 < /dev/null", ["a"]),
        ("a \\\n b", ["a   b"]),
        ("exec 3<>/dev/tcp/127.0.0.1/80", ["exec 3 /dev/tcp/127.0.0.1/80"]),
        ("echo $((1+1)) ${x}", ["echo $((1+1)) ${x}"]),
        ("a 'no end", ["a 'no end"]),
        ("A=1 B\nC=x\n$C ${C} $D", ["A=1 B", "x x $D"]),
        ("export P=/bin/x\n$P", ["/bin/x"]),
        ("A='$B'\n$A", ["A='$B'", "$A"]),
        ("if a; then A=1; fi", ["a", "A=1"]),
    ],
)
def test_commands(text: str, commands: list[str]):
    """Quotes and escapes hold together, comments and redirections go, plain variables are replaced."""
    assert [each.text for each in shell_commands(text)] == commands


@pytest.mark.parametrize(
    ("text", "inner", "continues"),
    [
        ("a $(b `c` d) e", [False, True, True, True, False], [False, False, False, True, True]),
        ("a `b $(c)` e", [False, True, True, False], [False, False, False, True]),
        ("a `b (c` e", [False, True, True, False], [False, False, False, True]),
        ('a "$(b)" c', [False, True, False], [False, False, True]),
        ("(a) b )", [False, False], [False, False]),
    ],
)
def test_output_that_is_taken(text: str, inner: list[bool], continues: list[bool]):
    """What stands in a substitution is told from what goes on behind it."""
    found = shell_commands(text)
    assert [each.inner for each in found] == inner
    assert [each.continues for each in found] == continues


def test_what_stands_around():
    """Keywords before a command and what joins it to the next are told; a line has its end."""
    found = shell_commands("if ! a; then\n{ b && c; }\nfi\n\tthen\td")
    assert [(each.keywords, each.text, each.behind) for each in found] == [
        (("if", "!"), "a", ";"),
        (("then", "{"), "b", "&&"),
        ((), "c", ";"),
        (("}", "fi", "then"), "d", "\n"),
    ]


def test_words():
    """The program is named without its directory, and words have no quotes."""
    (found,) = shell_commands("/bin/grep -c '[h]aproxy' \"x\"")
    assert (found.program, found.words) == ("grep", ("/bin/grep", "-c", "[h]aproxy", "x"))
    assert shell_commands('"" ; x')[0].program == ""


def test_a_long_script():
    """Only the beginning of a text is looked at."""
    assert shell_commands(" " * LONGEST_SCRIPT + "a") == ()


@given(st.text(alphabet="ab$(){}`'\"\\\n;|&#<> /=", max_size=60))
def test_any_text(text: str):
    """No text is an exception, and no command is empty."""
    assert all(each.text for each in shell_commands(text))
