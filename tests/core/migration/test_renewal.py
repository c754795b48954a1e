"""What changes of a session because it has come from another node."""

import msgspec
import pytest
from support.values.migration import OFFER
from support.values.moving_sessions import OPEN

from appliance.core.migration.renewal import arrived
from appliance.wire.lines.moving_sessions import MovingSession, MovingSide
from appliance.wire.session_migration import Migrating

pytestmark = pytest.mark.pure

_QUIET = MovingSide(count=1, idle=0.9, eof=False, shut=False, first=False)
_SHUT = msgspec.structs.replace(_QUIET, shut=True)


_WAITING: Migrating = OFFER.sessions[0]


def _arrived(**changes: object) -> MovingSession:
    session = msgspec.structs.replace(OPEN, **changes)
    return arrived(msgspec.structs.replace(_WAITING, session=session), "::ffff:192.0.2.7").session


def test_the_node_is_added_to_the_id_once():
    """Ids of two nodes may be the same; one that has moved before keeps the node on which it began."""
    assert _arrived(id="proxy-api-1-0-7").id == "proxy-api-1-0-7@192.0.2.7"
    assert _arrived(id="proxy-api-1-0-7@192.0.2.9").id == "proxy-api-1-0-7@192.0.2.9"


@pytest.mark.parametrize("moved_before", ["", "@192.0.2.9"], ids=["first move", "later move"])
def test_a_move_does_not_use_up_the_time_of_a_half_closed_side(moved_before: str):
    """The short time-out after a FIN begins anew; the long one of an open side goes on."""
    server = _arrived(id=f"7{moved_before}", client=_QUIET, server=_SHUT)
    client = _arrived(id=f"7{moved_before}", client=_SHUT, server=_QUIET)

    assert (server.client.idle, server.server) == (0.9, msgspec.structs.replace(_SHUT, idle=0.0))
    assert (client.client.idle, client.server) == (0.0, _QUIET)


def test_all_else_stays():
    """The states of its connections, and a session without a server."""
    found = arrived(_WAITING, "192.0.2.7")

    assert msgspec.structs.replace(found.session, id=_WAITING.session.id) == _WAITING.session
    assert (found.client, found.server) == (_WAITING.client, None)
