"""Sessions on their way to another worker: one that is open, one that waits for a server."""

from typing import Final

import msgspec
from support.values.snapshots import server

from appliance.wire.lines.moving_sessions import MovingSession, MovingSide, Waiting

_SIDE = MovingSide(count=1, idle=0.5, eof=False, shut=False, first=False, backlog=b"held", piped=3)
OPEN: Final = MovingSession(
    id="proxy-api-1-0-1",
    frontend="kube-api",
    pool="masters",
    member=server("master-0"),
    address=b"\x02\x00",
    started=1.0,
    connect=1.0,
    ready=1.0,
    attempts=0,
    counted_in=0,
    counted_out=0,
    keepalive_set=False,
    max_age=None,
    client=msgspec.structs.replace(_SIDE, piped=0),
    server=_SIDE,
)
QUEUED: Final = msgspec.structs.replace(
    OPEN,
    member=None,
    ready=None,
    server=None,
    waiting=Waiting(phase="queued", early=b"hello", tried=("master-1",), left=9.0, dialled=0.5),
)
