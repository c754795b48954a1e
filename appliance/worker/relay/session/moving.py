"""Moves a session to another process: it is held still, handed over or kept, and continued there.

Its descriptors are copied to the other process (SCM_RIGHTS, unix(7)), so that for a moment both have them.
Only one process touches the sockets: the former one until it sends `take`, the new one afterwards. The
process that does not continue a session closes its copies, which the peers do not notice.
"""

import os
from collections.abc import Sequence
from random import random
from time import monotonic
from typing import Final, Literal

from appliance.core.balancing.frontend_state import FrontendState
from appliance.core.balancing.pool_member import PoolMember
from appliance.core.balancing.pool_state import MustWait
from appliance.wire.lines.moving_sessions import MovingSession, MovingSide, Waiting
from appliance.worker.relay.all_sessions import Traffic
from appliance.worker.relay.backend import Backend
from appliance.worker.relay.copying import Side
from appliance.worker.relay.pipes import Pipe
from appliance.worker.relay.session.session import Session
from appliance.worker.relay.session.session_phases import CLOSED, CONNECTING, DELAYED, OPEN, QUEUED

_WAITING: Final[dict[int, Literal["queued", "delayed", "connecting"]]] = {
    QUEUED: "queued",
    DELAYED: "delayed",
    CONNECTING: "connecting",
}

Stage = tuple[int, Side | None, PoolMember | None]
"""How far a session has come, to be compared."""


def can_move(session: Session) -> bool:
    """Return whether a session may be held still now: it relays, and neither side waits for a tick."""
    server = session.server
    if session.phase != OPEN or session.member is None or server is None:
        return False
    resting = session.traffic.resting
    return not resting or (session.client not in resting and server not in resting)


def waits(session: Session) -> bool:
    """Return whether a session waits for a server or its connect, and may be held still."""
    return session.phase in _WAITING and (session.phase != CONNECTING or session.server is not None)


def stage(session: Session) -> Stage:
    """Return how far a session has come. While held still, a waiting one may continue at a deadline."""
    return session.phase, session.server, session.member


def without_pipes(session: Session) -> None:
    """Make the session hold in memory what its pipes hold: a pipe cannot go to another node."""
    for side in _sides(session):
        pipe = side.pipe
        if pipe is None:
            continue
        if pipe.held:
            rest = os.read(pipe.reader, pipe.held)
            pipe.held -= len(rest)
            side.return_pipe(pipe)
            side.hold(memoryview(rest))
        else:
            side.return_pipe(pipe)


def hold_still(session: Session) -> None:
    """Stop reading and writing: what arrives stays in the kernel. The session may still be ended."""
    session.count_bytes()
    for side in _sides(session):
        side.pause()


def go_on(session: Session) -> None:
    """Read and write again, unless the session has since ended."""
    try:
        for side in _watched(session):
            side.watch()
    except OSError as error:  # the kernel watches no more descriptors: only this session ends
        session.fail(error)


def try_again(session: Session) -> None:
    """Look for a place if the session waits for one: departed sessions made room without an event."""
    if session.phase == QUEUED:
        session.backend.pool.dequeue(session)
        session.place_free()


def note_copies(session: Session) -> None:
    """Note that another process may have copies of the descriptors of a session that continues here."""
    for side in _sides(session):
        side.copied = True


def leave(session: Session) -> None:
    """Forget a session that another process continues; its peers notice nothing."""
    if session.phase == CLOSED:
        return
    session.backend.pool.dequeue(session)
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
        session.backend.pool.depart(member)
    if traffic.paused:
        traffic.make_room()


def description(session: Session, name: str) -> MovingSession:
    """Return what the other process must know of a session held still; `name` is its id."""
    member, server, now = session.member, session.server, session.traffic.now
    return MovingSession(
        id=name,
        frontend=session.frontend.name,
        pool=session.backend.pool.config.name,
        member=member.config if member is not None else None,
        address=session.address,
        started=_ago(now, session.started),
        connect=_ago(now, session.connect_at) if session.connect_at else None,
        ready=_ago(now, session.ready_at) if session.ready_at else None,
        attempts=session.attempts,
        counted_in=session.counted_in,
        counted_out=session.counted_out,
        keepalive_set=session.keepalive_set,
        max_age=session.max_age_at - now if session.max_age_at else None,
        client=_description(session.client, now),
        server=_description(server, now) if server is not None else None,
        waiting=_waiting(session, now),
    )


def _waiting(session: Session, now: float) -> Waiting | None:
    phase = _WAITING.get(session.phase)
    if phase is None:
        return None
    return Waiting(
        phase=phase,
        early=session.early or b"",
        tried=tuple(each.name for each in session.tried),
        left=session.deadline - now,
        dialled=_ago(monotonic(), session.dialled_at) if session.dialled_at else 0.0,
    )


def descriptors(session: Session) -> list[int]:
    """Return the descriptors of a session, in the order in which they accompany an offer."""
    sides = _sides(session)
    found = [side.fd for side in sides]
    for side in sides:
        if side.pipe is not None and side.pipe.held:
            found += [side.pipe.reader, side.pipe.writer]
    return found


def held_in_memory(session: Session) -> int:
    """Return how many bytes of a session accompany its descriptors."""
    backlogs = sum(len(each.backlog) for each in _sides(session) if each.backlog is not None)
    return backlogs + len(session.early or b"")


def arrive(
    traffic: Traffic,
    frontend: FrontendState,
    backend: Backend,
    moving: MovingSession,
    owned: Sequence[int],
) -> Session:
    """Continue a session of another process; `owned` are its descriptors, now the session's.

    A bug, or a kernel that watches no more descriptors, ends it: nothing else would.
    """
    session = Session(traffic, frontend, backend, owned[0], moving.address)
    frontend.current += 1
    if moving.server is not None:
        session.server = Side(session, owned[1])
    try:
        _settle(session, moving, owned[len(_sides(session)) :])
    except Exception as error:  # noqa: BLE001  # the boundary: see above
        session.fail(error)
    return session


def _settle(session: Session, moving: MovingSession, pipes: Sequence[int]) -> None:
    now, pool = session.traffic.now, session.backend.pool
    session.attempts = moving.attempts
    session.started = now - moving.started
    session.connect_at = now - moving.connect if moving.connect is not None else 0.0
    session.counted_in, session.counted_out = moving.counted_in, moving.counted_out
    session.keepalive_set = moving.keepalive_set
    session.max_age_at = _max_age_at(session, moving, now)
    if moving.member is not None:
        session.member = pool.join(moving.member)
    if moving.waiting is not None:
        _restore(session.client, moving.client, now)
        _wait_on(session, moving.waiting)
    elif session.server is not None and moving.server is not None and moving.ready is not None:
        session.ready_at = now - moving.ready
        _relay(session, session.server, (moving.client, moving.server), pipes)


def _relay(
    session: Session, server: Side, moved: tuple[MovingSide, MovingSide], pipes: Sequence[int]
) -> None:
    """Continue a session that relays."""
    traffic, client, ends = session.traffic, session.client, iter(pipes)
    session.phase = OPEN
    for side, each in zip((client, server), moved, strict=True):
        _restore(side, each, traffic.now)
        if each.piped:
            side.pipe = traffic.pipes.adopt(Pipe.of(next(ends), next(ends), held=each.piped))
    client.other, server.other = server, client
    client.relays = server.relays = True
    if not client.eof and not server.eof:
        traffic.every_tick.discard(session)
    client.watch()
    server.watch()


def _wait_on(session: Session, waiting: Waiting) -> None:
    """Continue a session that has no connection to a server yet; its wait keeps its deadline."""
    backend, now = session.backend, session.traffic.now
    known = {each.name: each for each in backend.pool.counted}
    session.tried = tuple(known[name] for name in waiting.tried if name in known)
    session.early = waiting.early or None
    session.dialled_at = monotonic() - waiting.dialled
    session.deadline = now + waiting.left
    if backend.hashed:
        session.key = backend.key(session.client.fd, session.address)
    if waiting.phase == "queued":
        _queue_again(session)
        return
    session.phase = CONNECTING if waiting.phase == "connecting" else DELAYED
    go_on(session)


def _queue_again(session: Session) -> None:
    """Take a place if there is one here, else wait; a full queue does not refuse it, as it was in one."""
    pool = session.backend.pool
    decision = pool.place(session.key, avoid=session.tried)
    if not isinstance(decision, MustWait):
        session.act_on(decision)
        return
    session.phase = QUEUED
    pool.wait(session, session.key, avoid=session.tried)
    go_on(session)


def _max_age_at(session: Session, moving: MovingSession, now: float) -> float:
    """Keep the max_age time that its worker chose, unless max_age came or went with the configuration."""
    frontend = session.frontend
    if frontend.max_age <= 0.0:
        return 0.0
    if moving.max_age is not None:
        return now + moving.max_age
    return frontend.expiry(session.started, chance=random())  # noqa: S311  # no secret


def _sides(session: Session) -> tuple[Side, ...]:
    return (session.client,) if session.server is None else (session.client, session.server)


def _watched(session: Session) -> tuple[Side, ...]:
    """Return the sides whose events are wanted, as the table of `session_phases` says."""
    if session.phase == OPEN:
        return _sides(session)
    if session.phase == QUEUED:
        return (session.client,)
    return (session.server,) if session.phase == CONNECTING and session.server is not None else ()


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


def _restore(side: Side, moved: MovingSide, now: float) -> None:
    side.count = moved.count
    side.active_at = now - moved.idle
    side.eof, side.shut, side.first = moved.eof, moved.shut, moved.first
    if moved.backlog:
        side.backlog = memoryview(moved.backlog)


def _ago(now: float, then: float) -> float:
    return max(0.0, now - then)
