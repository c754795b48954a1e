"""A JSON object with a digest of itself."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzzing.damage import flips

from appliance.wire.checksummed_json import ChecksumError, checksummed, verified

pytestmark = pytest.mark.pure

OBJECTS = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=4)


@given(OBJECTS, st.sampled_from([None, 2]))
def test_what_was_sealed_comes_back(value: dict[str, object], indent: int | None):
    """A sealed object is the same object, and JSON with one more entry."""
    content = json.dumps(value, indent=indent).encode()
    assert json.loads(verified(checksummed(content))) == value
    assert json.loads(checksummed(content)).items() >= {**value}.items() or "sha256" in value


def test_an_object_without_seal_is_taken_as_it_is():
    """What somebody else wrote has none."""
    assert verified(b'{"number": 3}\n') == b'{"number": 3}\n'


def test_every_changed_bit_of_the_content_is_found():
    """A bit that is not as it was is a ChecksumError, wherever it is."""
    sealed = checksummed(b'{"port":6443,"host":"10.0.0.1"}')
    body = len(b'{"port":6443,"host":"10.0.0.1"')
    for damaged in flips(sealed):
        if damaged[:body] == sealed[:body]:
            continue
        with pytest.raises(ChecksumError):
            verified(damaged)
