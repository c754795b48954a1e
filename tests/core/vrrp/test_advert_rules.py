"""What one virtual router accepts of what it hears, and what it says itself."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.values.snapshots import virtual_router

from appliance.core.vrrp.advert_rules import AdvertRules, Arrival, advertisement, bare
from appliance.model.drop_reasons import DropReason
from appliance.wire.vrrp.advertisement import Advertisement, AuthType, VrrpError

pytestmark = pytest.mark.pure

GROUP = Arrival(source="192.0.2.2", destination="224.0.0.18", ttl=255)
DIRECT = Arrival(source="192.0.2.2", destination="192.0.2.1", ttl=64)
SECRET = "secret"  # noqa: S105  # of a test


def refusal(check: Callable[[], None]) -> DropReason:
    """Return why a check refuses."""
    with pytest.raises(VrrpError) as refused:
        check()
    return refused.value.reason


@pytest.mark.parametrize(("version", "password"), [(2, None), (2, SECRET), (2, "more than eight"), (3, None)])
def test_accepts_its_own_advertisement(version: int, password: str | None):
    """A peer of the same configuration is understood."""
    router = virtual_router(version=version, password=password)
    assert AdvertRules(router).check(advertisement(router, 100)) is None


def test_advertisement_has_the_settings():
    """An advertisement has the router's settings, without prefix lengths, and the priority that is given."""
    router = virtual_router(password="longer than eight", router_id=7, advert=2.0)  # noqa: S106
    assert advertisement(router, 0) == Advertisement(
        version=2,
        router_id=7,
        priority=0,
        interval=2.0,
        addresses=("192.0.2.200",),
        auth_type=AuthType.PASSWORD,
        password=b"longer t",
    )
    assert advertisement(replace(router, version=3), 9).password == b""


def test_addresses_are_written_as_packets_have_them():
    """Addresses lose their prefix length and have one spelling."""
    assert bare(("192.0.2.1/24", "FD00:0::1/64", "fd00::2")) == ("192.0.2.1", "fd00::1", "fd00::2")


@pytest.mark.parametrize(
    ("family", "arrival", "reason"),
    [
        (4, replace(GROUP, ttl=254), DropReason.HOP_LIMIT),
        (4, replace(GROUP, destination="192.0.2.1"), DropReason.DESTINATION),
        (6, replace(GROUP, destination="ff02::1"), DropReason.DESTINATION),
    ],
)
def test_multicast_comes_from_the_segment_to_the_group(family: int, arrival: Arrival, reason: DropReason):
    """RFC 9568 section 7.1: TTL 255, to the group of VRRP."""
    assert refusal(lambda: AdvertRules(virtual_router(family=family)).check_arrival(arrival)) is reason


def test_multicast_as_it_should_be():
    """What comes to the group with a whole TTL passes."""
    AdvertRules(virtual_router()).check_arrival(GROUP)
    AdvertRules(virtual_router(family=6)).check_arrival(replace(GROUP, destination="ff02::12"))


@pytest.mark.parametrize(
    ("arrival", "reason"),
    [
        (replace(DIRECT, source="192.0.2.9"), DropReason.NOT_A_PEER),
        (replace(DIRECT, destination="224.0.0.18"), DropReason.DESTINATION),
        (replace(DIRECT, ttl=63), DropReason.HOP_LIMIT),
    ],
)
def test_unicast_comes_from_a_peer(arrival: Arrival, reason: DropReason):
    """With peers only they are heard, from as far as `min_ttl` allows."""
    reception = AdvertRules(virtual_router(peers=("192.0.2.2",), min_ttl=64))
    reception.check_arrival(DIRECT)
    assert refusal(lambda: reception.check_arrival(arrival)) is reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": 3}, DropReason.VERSION),
        ({"interval": 2.0}, DropReason.INTERVAL),
        ({"addresses": ("192.0.2.201",)}, DropReason.ADDRESS_LIST),
        ({"auth_type": AuthType.NONE}, DropReason.AUTH_TYPE),
        ({"auth_type": AuthType.AH}, DropReason.AUTH_TYPE),
        ({"password": b"another"}, DropReason.PASSWORD),
    ],
)
def test_a_peer_of_another_configuration_is_refused(changes: dict[str, object], reason: DropReason):
    """Each difference has its reason."""
    router = virtual_router(password=SECRET)
    assert refusal(lambda: AdvertRules(router).check(replace(advertisement(router, 1), **changes))) is reason


def test_a_password_is_refused_where_none_is_configured():
    """Without a password of ours one of theirs is refused."""
    sent = advertisement(virtual_router(password=SECRET), 1)
    assert refusal(lambda: AdvertRules(virtual_router()).check(sent)) is DropReason.AUTH_TYPE


def test_version_3_learns_the_interval():
    """In version 3 another interval is no reason to refuse."""
    router = virtual_router(version=3)
    AdvertRules(router).check(replace(advertisement(router, 1), interval=0.5))


@pytest.mark.parametrize(
    "theirs",
    [
        ("192.0.2.200",),
        ("192.0.2.200", "192.0.2.201", "192.0.2.202"),
        ("192.0.2.202", "192.0.2.201"),
    ],
    ids=["fewer", "more", "others-too"],
)
def test_a_list_that_shares_an_address_is_a_deviation(theirs: tuple[str, ...]):
    """In the middle of a rolling change it is the same virtual router: its list is a deviation only."""
    router = virtual_router(addresses=("192.0.2.200/24", "192.0.2.201/24"))
    assert (
        AdvertRules(router).check(replace(advertisement(router, 1), addresses=theirs))
        is DropReason.ADDRESS_LIST
    )


def test_the_order_of_addresses_has_no_meaning():
    """The same addresses in another order are the same."""
    router = virtual_router(addresses=("192.0.2.200/24", "192.0.2.201/24"))
    sent = advertisement(router, 1)
    assert AdvertRules(router).check(replace(sent, addresses=tuple(reversed(sent.addresses)))) is None


def test_a_router_without_addresses_hears_its_like():
    """One that names addresses is another virtual router, whichever of both it is."""
    nothing, api = virtual_router(addresses=()), virtual_router()
    assert AdvertRules(nothing).check(advertisement(nothing, 1)) is None
    for one, other, reason in (
        (nothing, api, DropReason.ADDRESS_LIST),
        (api, nothing, DropReason.ADDRESS_COUNT),
    ):
        with pytest.raises(VrrpError) as refused:
            AdvertRules(one).check(advertisement(other, 1))
        assert refused.value.reason is reason
