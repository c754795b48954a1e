"""Texts of strangers, made harmless for terminals."""

import pytest

from appliance.model.messages.quoting import masked, printable

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "escaped", "hidden"),
    [
        ("plain", "plain", "plain"),
        ("Grüße, 世界", "Grüße, 世界", "Grüße, 世界"),
        ("\x1b[31mred", r"\x1b[31mred", "?[31mred"),
        ("one\ntwo", r"one\ntwo", "one?two"),
        ("left\u202eright", r"left\u202eright", "left?right"),
    ],
)
def test_nothing_that_a_terminal_obeys_is_left(text: str, escaped: str, hidden: str):
    """Control characters are escaped or masked; letters of any language stay."""
    assert (printable(text), masked(text, "?")) == (escaped, hidden)
