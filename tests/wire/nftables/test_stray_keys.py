"""Elements of the sets of strays, as the kernel has them."""

import pytest

from appliance.wire.nftables.stray_keys import decode

pytestmark = pytest.mark.pure

MAC = bytes.fromhex("020000000002")


@pytest.mark.parametrize(
    ("family", "key", "ends"),
    [
        (4, "cb007105 04d20000 c633640a 01bb0000", ("203.0.113.5", 1234, "198.51.100.10", 443)),
        (
            6,
            "20010db8000000000000000000000005 04d20000 20010db8001000000000000000000010 01bb0000",
            ("2001:db8::5", 1234, "2001:db8:10::10", 443),
        ),
    ],
)
def test_a_connection_and_who_forwarded_it(family: int, key: str, ends: tuple[str, int, str, int]):
    """Every part fills whole words; what is longer or shorter is of another set."""
    whole = bytes.fromhex(key) + MAC + bytes(2)
    assert decode(whole, family=family) == (ends, MAC)
    assert decode(whole[:-1], family=family) is None
    assert decode(b"", family=family) is None
