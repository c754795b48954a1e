"""What is held back, as the kernel lists it."""

from collections.abc import Iterator

import pytest

from appliance.core.migration import ruleset
from appliance.migrate.held_packets import HeldPackets
from appliance.net.nftables.nftables import Nftables

pytestmark = [pytest.mark.kernel, pytest.mark.needs("nft", root=True)]

_FOUR = ("192.0.2.9", 40000, "192.0.2.100", 6443)
_SIX = ("fd00::9", 40000, "fd00::100", 6443)
_LATER = ("192.0.2.9", 40001, "192.0.2.100", 6443)


@pytest.fixture
def held() -> Iterator[HeldPackets]:
    """Give them, and let everything through afterwards."""
    made = HeldPackets()
    yield made
    made.close()


def _listed(family: str) -> str:
    connection = Nftables()
    try:
        return str(connection.run(f"list set {family} {ruleset.TABLE} held"))
    finally:
        connection.close()


def test_what_is_held_is_let_go(held: HeldPackets):
    """While under way and afterwards, of both families; the others stay held."""
    held.hold([_FOUR, _SIX, _LATER])
    assert all(each in _listed("ip") for each in ("40000", "40001"))

    held.hold_afterwards([_FOUR])
    held.let_go([_FOUR, _SIX])

    assert "40000" not in _listed("ip") + _listed("ip6")
    assert "40001" in _listed("ip")


def test_letting_go_of_what_is_not_held_is_nothing(held: HeldPackets):
    """Sessions that come are held only if they had left this node a moment ago."""
    held.hold([_LATER])
    held.let_go([_FOUR, _SIX])
    assert "40001" in _listed("ip")
    held.let_go([_LATER])
    held.let_go([_LATER])
    assert "40001" not in _listed("ip")
