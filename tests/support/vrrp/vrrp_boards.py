"""The board of vrrp, with the few fields that a test is about."""

from dataclasses import replace

from appliance.wire.boards.vrrp_board import RouterRecord, VrrpBoard

_ROUTER = RouterRecord(
    name="api",
    state="active",
    priority=150,
    since=100.0,
    transitions=3,
    adverts_sent=7,
    adverts_received=6,
    priority_zero_sent=0,
    priority_zero_received=0,
    gratuitous_sent=5,
    last_advert=10.0,
    peer="",
    drops={},
    became_active=2,
    left_active=1,
)


def vrrp_board(**changes: object) -> VrrpBoard:
    """Return the board of one router; `changes` are of its record."""
    return VrrpBoard(
        snapshot=7,
        pid=77,
        written_at=200.0,
        monotonic=10.0,
        late_wakeups=4,
        latest_wakeup=0.02,
        realtime=True,
        routers=(replace(_ROUTER, **changes),),
    )
