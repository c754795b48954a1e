"""Notices of nftables: which are about tables of ours, whatever the bytes are, and the kernel's own."""

import struct
import subprocess
from contextlib import closing

import pytest
from gevent.event import Event
from hypothesis import given
from hypothesis import strategies as st

from appliance.net.netlink.rtnetlink import attribute
from appliance.net.netlink.table_notices import TableNotices, removes

_OURS = b"lb_linger\0"
_REMOVED_TABLE, _ADDED_TABLE, _REMOVED_ELEMENT = 10 << 8 | 2, 10 << 8, 10 << 8 | 14


def _notice(kind: int, table: bytes) -> bytes:
    body = bytes(4) + attribute(1, table)
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


@pytest.mark.pure
@pytest.mark.parametrize(
    ("kind", "table", "told"),
    [
        (_REMOVED_TABLE, _OURS, True),
        (_REMOVED_TABLE, b"lb_linger_guard\0", False),
        (_ADDED_TABLE, _OURS, False),
        (_REMOVED_ELEMENT, _OURS, False),
    ],
)
def test_removals_of_ours_are_told(kind: int, table: bytes, told: bool):  # noqa: FBT001  # a case
    """Not those of other tables, nor what is written there; behind other notices, too."""
    assert removes(_notice(kind, table), {_OURS}) is told
    assert removes(_notice(_REMOVED_TABLE, b"x\0") + _notice(kind, table), {_OURS}) is told


@pytest.mark.pure
@given(st.binary(max_size=300))
def test_any_bytes_are_read(data: bytes):
    """Garbage is no error, alone and behind a header; nor is a notice that is cut anywhere in its name."""
    removes(data, {_OURS})
    removes(struct.pack("=IHHII", len(data), _REMOVED_TABLE, 0, 0, 0) + data, {_OURS})
    whole = _notice(_REMOVED_TABLE, _OURS)
    padding = -len(_OURS) % 4
    assert not removes(whole[: len(data) % (len(whole) - padding)], {_OURS})


@pytest.mark.kernel
@pytest.mark.needs("nft", root=True)
def test_a_flush_is_told_at_once():
    """Each time, and nothing goes wrong."""
    told, faults = Event(), list[BaseException | None]()
    subprocess.run(["nft", "flush", "ruleset"], check=True)
    with closing(TableNotices("lb_linger", on_removal=told.set, on_fault=faults.append)):
        for _ in range(3):
            subprocess.run(["nft", "add table ip lb_linger"], check=True)
            subprocess.run(["nft", "flush", "ruleset"], check=True)
            assert told.wait(30)
            told.clear()
    assert faults == []
