"""The messages of a take-over, between releases that may differ."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.wire.lines.control import Question
from appliance.wire.lines.succession import (
    FORM,
    TAKE_OVER,
    UPGRADE,
    Party,
    Predecessor,
    SuccessionError,
    decode_command,
    decode_predecessor,
    encode_command,
    encode_predecessor,
    party,
    request,
    values_of,
    wanted,
    wanted_command,
)

pytestmark = pytest.mark.pure


def test_a_party_travels_in_a_question():
    """Whoever asks is read as it was written."""
    asking = Party(version="2.0", instance="17-abc")
    question = request(asking)
    assert question.command == TAKE_OVER
    assert party(question.values) == asking


def test_what_a_newer_release_adds_is_ignored():
    """A field that is not known here changes nothing."""
    assert party({**values_of(Party(version="3.0")), "news": [1]}) == Party(version="3.0")


def test_another_form_is_refused_in_words():
    """The reason names the release that speaks it."""
    with pytest.raises(SuccessionError, match=f"version 9.0 speaks form 2 of a take-over, not {FORM}"):
        party({"form": 2, "version": "9.0"})


def test_what_is_no_party_is_refused():
    """A field of another type is named."""
    with pytest.raises(SuccessionError, match="version"):
        party({"version": 7})


def test_a_predecessor_survives_the_environment():
    """What `run` leaves is what supervisord finds."""
    left = Predecessor(connection=7, pid=12, version="1.0", instance="12-abc")
    assert decode_predecessor(encode_predecessor(left)) == left


def test_a_command_travels_in_a_question_and_in_the_environment():
    """Word by word."""
    command = ("/opt/appliance-2/bin/appliance", "--config", "/etc/a file")
    assert wanted(command).command == UPGRADE
    assert wanted_command(wanted(command)) == command
    assert decode_command(encode_command(command)) == command


@pytest.mark.parametrize(
    "words",
    [None, [], "x", [7], [""], ["appliance"], ["/a\0b"], ["/a"] * 9, ["/" + "a" * 4096]],
)
def test_what_is_no_command_is_refused(words: object):
    """Nothing, too much, another type, a name that a search path would have to find."""
    with pytest.raises(SuccessionError, match="no command"):
        wanted_command(Question(command=UPGRADE, values={"words": words}))


@given(st.text(max_size=200) | st.recursive(st.integers() | st.text(), st.lists).map(json.dumps))
def test_garbage_is_no_command(text: str):
    """Any text is a command or a SuccessionError."""
    with contextlib.suppress(SuccessionError):
        assert decode_command(text)


@given(st.text(max_size=200) | st.recursive(st.integers(), st.lists).map(json.dumps))
def test_garbage_never_escapes(text: str):
    """Any text is a predecessor or a SuccessionError."""
    with contextlib.suppress(SuccessionError):
        decode_predecessor(text)
