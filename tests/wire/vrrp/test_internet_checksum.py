"""The checksum of RFC 1071."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fuzzing.damage import ones_complement_sum

from appliance.wire.vrrp import internet_checksum

pytestmark = pytest.mark.pure

EVEN = st.binary(min_size=2, max_size=400).map(lambda data: data[: len(data) // 2 * 2]).filter(any)


def test_the_example_of_the_rfc():
    """RFC 1071 section 3 adds up 00 01 f2 03 f4 f5 f6 f7 to ddf2."""
    assert internet_checksum.checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0xFFFF - 0xDDF2


@given(EVEN)
def test_it_is_the_complement_of_the_sum(data: bytes):
    """For everything but zeros it is what adding word by word gives."""
    assert internet_checksum.checksum(data) == 0xFFFF - ones_complement_sum(data)


@given(EVEN)
def test_data_with_its_checksum_holds(data: bytes):
    """With the checksum in it data is right, with any other it is not."""
    right = internet_checksum.checksum(data)
    assert internet_checksum.holds(data + right.to_bytes(2, "big"))
    assert not internet_checksum.holds(data + (right ^ 0x0100).to_bytes(2, "big"))
