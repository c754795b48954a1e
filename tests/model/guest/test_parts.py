"""Lists in properties: their parts are told apart, and each wrong one is told."""

import pytest

from appliance.model.guest import value_types
from appliance.model.guest.parts import parts, unquoted

pytestmark = pytest.mark.pure


def test_lists_have_any_separator_and_tell_each_wrong_part():
    """Commas, semicolons and white space; the same part counts once."""
    found = parts("10.0.0.1, x;10.0.0.2\n10.0.0.1 y,", value_types.host_address)
    assert found.right == ("10.0.0.1", "10.0.0.2")
    assert len(found.wrong) == 2


@pytest.mark.parametrize(
    "text", ['"a"', "'a'", "\u201ca\u201d", "\u2018a\u2019", "\u201ea\u201c", '" a "', "a"]
)
def test_quotes_round_a_text_go(text: str):
    """They came from a script or a document, in a pair."""
    assert unquoted(text) == "a"


@pytest.mark.parametrize("text", ['"a', 'a"', "\"a'", '"a" "b"', '"', "", '""'])
def test_what_is_no_pair_of_quotes_stays(text: str):
    """Somebody has to look at it."""
    assert unquoted(text) in {text, ""}


def test_each_part_may_have_quotes():
    """As in a list of a program."""
    assert parts('"10.0.0.1", "10.0.0.2"', value_types.host_address).right == ("10.0.0.1", "10.0.0.2")
