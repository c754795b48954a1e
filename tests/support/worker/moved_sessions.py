"""A session moved between two workers' traffic in the process of the test, as two workers do it."""

import os

import msgspec
from support.worker.lone_sessions import LoneSessions

from appliance.wire.lines import moving_sessions
from appliance.wire.lines.moving_sessions import MovingSession
from appliance.worker.relay.session import moving
from appliance.worker.relay.session.session import Session


def told(session: Session) -> MovingSession:
    """Return the description of a session as the other process reads it from the line."""
    offer = moving_sessions.offer_of([moving.description(session, "a-1-0-1")])
    line = msgspec.json.encode(moving_sessions.values(offer))
    return moving_sessions.offer(msgspec.json.decode(line)).sessions[0]


def move(session: Session, target: LoneSessions) -> Session:
    """Move a session, and return the one that goes on."""
    moving.hold_still(session)
    description = told(session)
    copies = [os.dup(each) for each in moving.descriptors(session)]
    moving.leave(session)
    return moving.arrive(target.traffic, target.frontend, target.backend, description, copies)
