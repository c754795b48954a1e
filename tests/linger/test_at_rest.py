"""What tells `linger` that it has to look: at rest it reads nothing ten times a second."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.processes.waiting import wait_until

from appliance.linger.vrrp_view import VrrpView
from appliance.model.paths import Paths
from appliance.net.boards.board_writer import BoardWriter
from appliance.net.netlink.address_notices import AddressNotices
from appliance.net.netlink.loopback_addresses import KeptAddresses
from appliance.wire.boards import vrrp_board
from appliance.wire.boards.vrrp_board import RouterRecord, VrrpBoard

_VIP = "192.0.2.100"
_ROUTERS = {_VIP: "api"}
_RECORD = RouterRecord(
    name="api",
    state="active",
    priority=100,
    since=0.0,
    transitions=1,
    adverts_sent=0,
    adverts_received=0,
    priority_zero_sent=0,
    priority_zero_received=0,
    gratuitous_sent=0,
    last_advert=0.0,
    peer="",
    drops={},
)
_BOARD = VrrpBoard(
    snapshot=1,
    pid=1,
    written_at=0.0,
    monotonic=0.0,
    late_wakeups=0,
    latest_wakeup=0.0,
    realtime=False,
    routers=(_RECORD,),
)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Give a runtime directory of its own."""
    return Paths(runtime=tmp_path, state=tmp_path)


@pytest.fixture
def view(paths: Paths) -> Iterator[VrrpView]:
    """Give a view of the board that is there."""
    found = VrrpView(paths)
    yield found
    found.close()


@pytest.mark.pure
def test_a_board_is_read_after_a_change_only(paths: Paths, view: VrrpView):
    """Also one that another file replaces; without one, nothing is known, and it is looked for."""
    assert view.has_changed()
    assert view.active(_ROUTERS) is None
    for state, active in (("active", {_VIP}), ("backup", set())):
        board = BoardWriter(paths.vrrp_board)
        for _ in range(2):
            board.publish(vrrp_board.encode(replace(_BOARD, routers=(replace(_RECORD, state=state),))))
            assert view.has_changed()
            assert view.active(_ROUTERS) == active
            assert not view.has_changed()
            assert view.active(_ROUTERS) == active
        board.close(unlink=True)


@pytest.mark.pure
def test_without_virtual_ips_there_is_no_board(view: VrrpView):
    """Shared addresses alone need none: nothing is active, and nothing is opened."""
    assert view.active({}) == frozenset()


@pytest.mark.kernel
@pytest.mark.needs(root=True)
def test_addresses_tell_that_they_came_and_went():
    """So they are listed then only."""
    notices, kept = AddressNotices(), KeptAddresses()
    try:
        assert not notices.changed()
        for change in (kept.keep, kept.remove):
            change("198.51.100.77")
            wait_until(notices.changed, what="it is told")
            assert not notices.changed()
    finally:
        kept.close()
        notices.close()
