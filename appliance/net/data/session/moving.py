"""A session that goes to another process: held still, handed over or kept, and gone on with there.

Its descriptors are copied to the other process (SCM_RIGHTS, unix(7)), so that for a moment both have them.
Only one of them touches the sockets: the former one until it says `take`, the new one from then on. Whoever
does not go on with a session closes its copies, which the peers do not notice.
"""

import os
from collections.abc import Sequence
from random import random

from appliance.core.balancing.frontend_state import FrontendState
from appliance.net.data.backend import Backend
from appliance.net.data.pipes import Pipe
from appliance.net.data.session.session import Session
from appliance.net.data.session.session_phases import CLOSED, OPEN
from appliance.net.data.sides import Side
from appliance.net.data.traffic import Traffic
from appliance.wire.lines.moving_sessions import MovingSession, MovingSide


def can_move(session: Session) -> bool:
    """Say whether a session may be held still now: it relays, and no side of it waits for a tick."""
    server = session.server
    if session.phase != OPEN or session.member is None or server is None:
        return False
    resting = session.traffic.resting
    return not resting or (session.client not in resting and server not in resting)


def hold_still(session: Session) -> None:
    """Stop reading and writing: what arrives stays in the kernel. It may still be ended."""
    session.count_bytes()
    for side in _sides(session):
        side.pause()


def go_on(session: Session) -> None:
    """Read and write again, where it has not been ended meanwhile."""
    if session.phase != OPEN:
        return
    try:
        for side in _sides(session):
            side.watch()
    except OSError as error:  # the kernel watches no more descriptors: this session ends, and no other
        session.fail(error)


def note_copies(session: Session) -> None:
    """Note that another process may have copies of the descriptors of a session that goes on here."""
    for side in _sides(session):
        side.copied = True


def leave(session: Session) -> None:
    """Forget a session that another process goes on with; its peers notice nothing."""
    if session.phase != OPEN:
        return
    traffic, member = session.traffic, session.member
    session.phase = CLOSED
    traffic.live.discard(session)
    traffic.every_tick.discard(session)
    traffic.changed = True
    session.frontend.current -= 1
    for side in _sides(session):
        os.close(side.release())
    if member is not None:
        session.member = None
        traffic.wake_queued(session.backend.pool.release(member))
    if traffic.paused:
        traffic.make_room()


def description(session: Session, name: str) -> MovingSession:
    """Return what the other process has to know of a session that is held still; `name` is its id."""
    member, server, now = session.member, session.server, session.traffic.now
    if member is None or server is None:
        raise TypeError(session)
    return MovingSession(
        id=name,
        frontend=session.frontend.name,
        pool=session.backend.pool.config.name,
        member=member.config,
        address=session.address,
        started=_ago(now, session.started),
        connect=_ago(now, session.connect_at),
        ready=_ago(now, session.ready_at),
        attempts=session.attempts,
        counted_in=session.counted_in,
        counted_out=session.counted_out,
        keepalive_set=session.keepalive_set,
        max_age=session.max_age_at - now if session.max_age_at else None,
        client=_description(session.client, now),
        server=_description(server, now),
    )


def descriptors(session: Session) -> list[int]:
    """Return the descriptors of a session, in their order beside an offer."""
    found = [each.fd for each in _sides(session)]
    for each in _sides(session):
        if each.pipe is not None and each.pipe.held:
            found += [each.pipe.reader, each.pipe.writer]
    return found


def held_in_memory(session: Session) -> int:
    """Return how many bytes of a session stand beside its descriptors."""
    return sum(len(each.backlog) for each in _sides(session) if each.backlog is not None)


def arrive(
    traffic: Traffic,
    frontend: FrontendState,
    backend: Backend,
    moving: MovingSession,
    owned: Sequence[int],
) -> Session:
    """Go on with a session of another process; `owned` are its descriptors, which are the session's now.

    A bug, or a kernel that watches no more descriptors, ends it: nobody else would.
    """
    session = Session(traffic, frontend, backend, owned[0], moving.address)
    frontend.current += 1
    session.server = Side(session, owned[1])
    try:
        _settle(session, session.server, moving, owned[2:])
    except Exception as error:  # noqa: BLE001  # the boundary: see above
        session.fail(error)
    return session


def _settle(session: Session, server: Side, moving: MovingSession, pipes: Sequence[int]) -> None:
    traffic, client = session.traffic, session.client
    now, ends = traffic.now, iter(pipes)
    session.member = session.backend.pool.join(moving.member)
    session.phase = OPEN
    for side, told in ((client, moving.client), (server, moving.server)):
        _restore(side, told, now)
        if told.piped:
            side.pipe = traffic.pipes.adopt(Pipe.of(next(ends), next(ends), held=told.piped))
    session.attempts = moving.attempts
    session.started, session.connect_at = now - moving.started, now - moving.connect
    session.ready_at = now - moving.ready
    session.counted_in, session.counted_out = moving.counted_in, moving.counted_out
    session.keepalive_set = moving.keepalive_set
    session.max_age_at = _max_age_at(session, moving, now)
    client.other, server.other = server, client
    client.relays = server.relays = True
    if not client.eof and not server.eof:
        traffic.every_tick.discard(session)
    client.watch()
    server.watch()


def _max_age_at(session: Session, moving: MovingSession, now: float) -> float:
    """Keep the end that its worker has drawn, unless max_age came or went with the configuration."""
    frontend = session.frontend
    if frontend.max_age <= 0.0:
        return 0.0
    if moving.max_age is not None:
        return now + moving.max_age
    return frontend.expiry(session.started, chance=random())  # noqa: S311  # no secret


def _sides(session: Session) -> tuple[Side, ...]:
    return (session.client,) if session.server is None else (session.client, session.server)


def _description(side: Side, now: float) -> MovingSide:
    return MovingSide(
        count=side.count,
        idle=_ago(now, side.active_at),
        eof=side.eof,
        shut=side.shut,
        first=side.first,
        backlog=bytes(side.backlog) if side.backlog is not None else b"",
        piped=side.pipe.held if side.pipe is not None else 0,
    )


def _restore(side: Side, told: MovingSide, now: float) -> None:
    side.count = told.count
    side.active_at = now - told.idle
    side.eof, side.shut, side.first = told.eof, told.shut, told.first
    if told.backlog:
        side.backlog = memoryview(told.backlog)


def _ago(now: float, then: float) -> float:
    return max(0.0, now - then)
