"""The messages of a take-over, between releases that may differ."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.wire.lines.succession import (
    FORM,
    TAKE_OVER,
    Party,
    Predecessor,
    SuccessionError,
    decode_predecessor,
    encode_predecessor,
    party,
    request,
    values_of,
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


@given(st.text(max_size=200) | st.recursive(st.integers(), st.lists).map(json.dumps))
def test_garbage_never_escapes(text: str):
    """Any text is a predecessor or a SuccessionError."""
    with contextlib.suppress(SuccessionError):
        decode_predecessor(text)
