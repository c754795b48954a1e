"""A session on its way to another node, as the two `migrate` describe it."""

from appliance.wire.lines.moving_sessions import MovingSession, MovingSide, Waiting
from appliance.wire.session_migration import Migrating, Offer
from appliance.wire.tcp_state import Place, TcpState

BATCH = bytes(range(16))
_SIDE = MovingSide(count=1, idle=0.5, eof=False, shut=False, first=True)
SESSION = MovingSession(
    id="proxy-api-1-0-7",
    frontend="kube-api",
    pool="masters",
    member=None,
    address=b"\x02\x00" + bytes(14),
    started=1.0,
    connect=None,
    ready=None,
    attempts=0,
    counted_in=0,
    counted_out=0,
    keepalive_set=False,
    max_age=None,
    client=_SIDE,
    server=None,
    waiting=Waiting(phase="queued", early=b"hello", tried=(), left=3.0, dialled=0.0),
)
STATE = TcpState(
    local=Place("192.0.2.100", 6443),
    peer=Place("192.0.2.9", 40000),
    ipv6=False,
    mss=1460,
    scales=(7, 7),
    sack=True,
    timestamp=12,
    received=b"abc",
    received_next=3,
    sent=b"de",
    unsent=b"f",
    sent_next=(1 << 32) - 1,
    shut=False,
    window=bytes(20),
    options=(7200, 75, 9, 1, 0, 1, 1),
)
OFFER = Offer(
    batch=BATCH, program="proxy-api", sessions=(Migrating(session=SESSION, client=STATE, server=None),)
)
