"""VRRP messages, checked against captures."""

import pytest

from appliance.model.virtual_router import Checksum
from appliance.wire import vrrp
from appliance.wire.vrrp import Advertisement, AuthType

pytestmark = pytest.mark.pure

V2 = bytes.fromhex("212abf03010af11f0a042a010a042a020a042a036162636465666768")
V3 = bytes.fromhex("312cbf0203e8b3c60a042c640a042cc8")
V3_MESSAGE = bytes.fromhex("3133c80100644402c0000264")
V3_IPV6 = bytes.fromhex("312dbf0203e8cfa0fe8000000000000002005efffe00022d200100000000000000000000abcd000a")
SOURCE = "10.0.0.91"
SOURCE_6 = "fe80::d6ca:6dff:fe66:cf60"

SAID_V2 = Advertisement(
    version=2,
    router_id=42,
    priority=191,
    interval=10.0,
    addresses=("10.4.42.1", "10.4.42.2", "10.4.42.3"),
    auth_type=AuthType.PASSWORD,
    password=b"abcdefgh",
)
SAID_V3 = Advertisement(
    version=3, router_id=44, priority=191, interval=10.0, addresses=("10.4.44.100", "10.4.44.200")
)
SAID_V3_MESSAGE = Advertisement(
    version=3, router_id=51, priority=200, interval=1.0, addresses=("192.0.2.100",)
)
SAID_V3_IPV6 = Advertisement(
    version=3,
    router_id=45,
    priority=191,
    interval=10.0,
    addresses=("fe80::200:5eff:fe00:22d", "2001::abcd:a"),
)
VECTORS = pytest.mark.parametrize(
    ("wire", "said", "source", "destination", "checksum"),
    [
        pytest.param(V2, SAID_V2, SOURCE, vrrp.MULTICAST_4, Checksum.PSEUDO_HEADER, id="v2"),
        pytest.param(V3, SAID_V3, SOURCE, vrrp.MULTICAST_4, Checksum.PSEUDO_HEADER, id="v3"),
        pytest.param(
            V3_MESSAGE,
            SAID_V3_MESSAGE,
            "198.51.100.10",
            vrrp.MULTICAST_4,
            Checksum.MESSAGE,
            id="v3-message",
        ),
        pytest.param(V3_IPV6, SAID_V3_IPV6, SOURCE_6, vrrp.MULTICAST_6, Checksum.PSEUDO_HEADER, id="v3-ipv6"),
    ],
)


@VECTORS
def test_a_captured_message_is_read(
    wire: bytes, said: Advertisement, source: str, destination: str, checksum: Checksum
):
    """Each captured message says what its sender was configured with."""
    assert vrrp.decode(wire, source=source, destination=destination) == said


@VECTORS
def test_a_captured_message_is_written(
    wire: bytes, said: Advertisement, source: str, destination: str, checksum: Checksum
):
    """We write every captured message byte by byte."""
    assert vrrp.encode(said, source=source, destination=destination, checksum=checksum) == wire
