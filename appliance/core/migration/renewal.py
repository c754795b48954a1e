"""What changes of a session because it has come from another node."""

import msgspec

from appliance.wire.lines.moving_sessions import MovingSide
from appliance.wire.session_migration import Migrating


def arrived(migrating: Migrating, node: str) -> Migrating:
    """Return a session of another node with an id that no session of this one has: that node is added.

    The silence of a side that was sent a FIN counts from now: `client_fin` and `server_fin` are short, and a
    move may take as long.
    """
    session = migrating.session
    added = "" if "@" in session.id else f"@{node.removeprefix('::ffff:')}"
    changed = msgspec.structs.replace(
        session,
        id=session.id + added,
        client=_renewed(session.client),
        server=_renewed(session.server) if session.server is not None else None,
    )
    return msgspec.structs.replace(migrating, session=changed)


def _renewed(side: MovingSide) -> MovingSide:
    return msgspec.structs.replace(side, idle=0.0) if side.shut else side
