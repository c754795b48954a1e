"""The kernel's figures of tracked connections, and what is logged of them."""

from pathlib import Path

import pytest
from structlog.testing import CapturingLogger
from structlog.typing import FilteringBoundLogger

from appliance.core.status.connection_room import ConnectionRoom
from appliance.net.netlink.connection_room import RoomWatch, connection_room, connection_times

pytestmark = pytest.mark.pure


def _tracks(folder: Path, used: int) -> None:
    (folder / "nf_conntrack_count").write_text(f"{used}\n")
    (folder / "nf_conntrack_max").write_text("100\n")


def test_the_room_is_read(tmp_path: Path):
    """Where the kernel tracks nothing, or writes something else, there is none."""
    assert connection_room(tmp_path) is None
    _tracks(tmp_path, 7)
    assert connection_room(tmp_path) == ConnectionRoom(used=7, limit=100)
    (tmp_path / "nf_conntrack_max").write_text("many")
    assert connection_room(tmp_path) is None


def test_a_table_that_fills_is_one_event(tmp_path: Path):
    """It is logged once when it fills and once when there is room again; looks are a second apart."""
    log = CapturingLogger()
    bound: FilteringBoundLogger = log  # type: ignore[assignment]  # it takes every call
    watch = RoomWatch(folder=tmp_path)
    for now, used in enumerate((10, 85, 90, 75, 60, 60), start=100):
        _tracks(tmp_path, used)
        watch.look(bound, float(now))
        watch.look(bound, now + 0.5)
    assert [(call.method_name, call.args[0], call.kwargs) for call in log.calls] == [
        ("warning", "conntrack-fills", {"used": 85, "limit": 100}),
        ("info", "conntrack-has-room", {}),
    ]


def test_times_of_connections(tmp_path: Path):
    """By nft's names; what the kernel does not show is left out, and what is no number."""
    for name, text in {"established": "600", "max_retrans": "7", "fin_wait": "x"}.items():
        (tmp_path / f"nf_conntrack_tcp_timeout_{name}").write_text(f"{text}\n")
    assert connection_times(tmp_path) == {"established": 600, "retrans": 7}
