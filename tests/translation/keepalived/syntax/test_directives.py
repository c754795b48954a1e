"""Directives and blocks, and braces that do not fit."""

import pytest
from support.translation.keepalived_files import told, translated

from appliance.model.messages.problems import FilePosition
from appliance.translation.keepalived.ledger import Ledger
from appliance.translation.keepalived.syntax.directives import DEEPEST_BLOCK, Directive, directives
from appliance.translation.keepalived.syntax.located_text import Word
from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure


def read(*statements: str) -> tuple[str, list[str]]:
    """Return the directives of statements, one on each line, and what is refused."""
    ledger = Ledger()
    found = directives(
        (
            tuple(
                Word(text=word, place=FilePosition(line=line, column=1, source="f"))
                for word in each.split(" ")
            )
            for line, each in enumerate(statements, 1)
        ),
        ledger,
    )
    return _shown(found), [f"{each.place.line} {each.reason}" for each in ledger.outcomes]


def _shown(found: tuple[Directive, ...]) -> str:
    return " ".join(
        each.keyword + (f"({_shown(each.block)})" if each.block is not None else "") for each in found
    )


def test_blocks():
    """A brace opens the block of the directive before it."""
    assert read("a x", "{", "b", "c", "{", "}", "}", "d") == ("a(b c()) d", [])


def test_braces_that_do_not_fit():
    """Each is told, and what stands between them is read all the same."""
    assert read("{", "a", "}", "b") == ("a b", ["1 there is no directive before this `{`"])
    assert read("a", "{", "}", "{", "b", "}") == ("a() b", ["4 there is no directive before this `{`"])
    more = "no block is open here: keepalived continues after it, and so does the appliance"
    assert read("}", "a") == ("a", [f"1 {more}"])
    missing = "this block is not closed: it ends with the file, as in keepalived"
    assert read("a", "{", "b", "{") == ("a(b())", [f"3 {missing}", f"1 {missing}"])
    assert read("{") == ("", ["1 there is no directive before this `{`", f"1 {missing}"])


def test_deep_blocks():
    """There is a bound, so that nothing runs out of stack."""
    text = ["a", "{"] * 50
    shown, refused = read(*text)
    assert shown.count("(") == DEEPEST_BLOCK
    assert any("are nested" in each for each in refused)


def test_lines_of_a_refused_block():
    """The block is refused once, and each line is left out with it, in other files and with a brace too."""
    text = "virtual_server 10.0.0.1 80 {\n  include rs\n  protocol UDP\n}\n"
    found = translated(text, files={"/etc/keepalived/rs": "real_server 10.0.0.2 80\n{\n}\n"})
    assert [line for line, _, _ in told(found, Outcome.REFUSED)] == [1]
    places = [(each.place.source, each.place.line) for each in found.lines if each.outcome is Outcome.IGNORED]
    assert places == [
        ("/etc/keepalived/rs", 1),
        ("/etc/keepalived/rs", 2),
        ("/etc/keepalived/rs", 3),
        ("/etc/keepalived/keepalived.conf", 3),
        ("/etc/keepalived/keepalived.conf", 4),
    ]
    assert told(found)[1][2] == "belongs to `virtual_server`, line 1, and is left out with it"
