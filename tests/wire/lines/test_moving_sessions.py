"""Open sessions on their way between workers: what one writes the other reads, and nothing else."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values.moving_sessions import OPEN, QUEUED
from support.values.snapshots import server

from appliance.wire.lines import moving_sessions
from appliance.wire.lines.control import (
    Answer,
    ControlError,
    Question,
    bad,
    decode_question,
    encode_question,
    good,
)
from appliance.wire.lines.moving_sessions import (
    OPEN_ONLY,
    WITH_WAITING,
    MovingSession,
    MovingSide,
    Offer,
    Offered,
    Taken,
    Waiting,
    descriptors_of,
)

pytestmark = pytest.mark.pure

_COUNTS = st.integers(0, 1 << 50)
_SECONDS = st.floats(0, 1e9)
_SIDES = st.builds(
    MovingSide,
    count=_COUNTS,
    idle=_SECONDS,
    eof=st.booleans(),
    shut=st.booleans(),
    first=st.booleans(),
    backlog=st.binary(max_size=100),
    piped=st.integers(0, 1 << 18),
)


def _sessions(phase: str) -> st.SearchStrategy[MovingSession]:
    """Return sessions of a phase."""
    waiting = st.builds(
        Waiting,
        phase=st.just(phase),
        early=st.binary(max_size=100),
        tried=st.lists(st.text(max_size=9), max_size=3).map(tuple),
        left=st.floats(-1e9, 1e9),
        dialled=_SECONDS,
    )
    is_open = phase == "open"
    return st.builds(
        MovingSession,
        id=st.text(max_size=30),
        frontend=st.text(max_size=30),
        pool=st.text(max_size=30),
        member=st.just(None if phase == "queued" else server("s")),
        address=st.binary(max_size=28),
        started=_SECONDS,
        connect=_SECONDS if is_open else st.none() | _SECONDS,
        ready=_SECONDS if is_open else st.none(),
        attempts=st.integers(0, 9),
        counted_in=_COUNTS,
        counted_out=_COUNTS,
        keepalive_set=st.booleans(),
        max_age=st.none() | st.floats(-1e9, 1e9),
        client=_SIDES,
        server=_SIDES if phase in ("open", "connecting") else st.none(),
        waiting=st.none() if is_open else waiting,
    )


_SESSIONS = st.sampled_from(["open", "queued", "delayed", "connecting"]).flatmap(_sessions)


def _offer(**changes: object) -> dict[str, Any]:
    made = moving_sessions.values(moving_sessions.offer_of([OPEN]))
    values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(made))
    return {**values, **changes}


@given(st.lists(_SESSIONS, max_size=3))
def test_what_is_offered_is_read(sessions: list[MovingSession]):
    """An offer survives the way over the control socket."""
    offer = moving_sessions.offer_of(sessions)
    line = encode_question(Question(command="offer", values=moving_sessions.values(offer)))
    assert moving_sessions.offer(decode_question(line.rstrip()).values) == offer


def test_answers_are_read():
    """So do the reasons against some, and the word that others are taken."""
    offered, taken = Offered(refused=("", "no pool masters")), Taken(places=(0,))
    assert moving_sessions.refusals(good(**moving_sessions.values(offered)), 2) == offered.refused
    assert moving_sessions.taken(moving_sessions.values(taken)) == taken


@pytest.mark.parametrize(
    ("answer", "why"),
    [(bad("no room", "no memory"), "no room; no memory"), (good(refused=("",)), "an answer for 1 of 2")],
)
def test_an_answer_without_a_word_for_each_session_is_refused(answer: Answer, why: str):
    """Nothing may be taken then."""
    with pytest.raises(ControlError, match=why):
        moving_sessions.refusals(answer, 2)


def test_another_version_is_refused():
    """Its sessions stay where they are and drain."""
    with pytest.raises(ControlError, match="version 3 of moving sessions, not 1 or 2"):
        moving_sessions.offer(_offer(version=3))


def test_the_former_release_is_offered_what_it_reads():
    """Open sessions go in the form that it knows; only an offer with others has the newer version."""
    assert moving_sessions.offer_of([OPEN, OPEN]).version == OPEN_ONLY
    assert moving_sessions.offer_of([OPEN, QUEUED]).version == WITH_WAITING


def test_the_former_releases_offer_is_read():
    """It says nothing of sessions that wait: all of its are open."""
    values = _offer()
    del values["sessions"][0]["waiting"]
    assert moving_sessions.offer(values) == Offer(version=OPEN_ONLY, sessions=(OPEN,))


@pytest.mark.parametrize(
    "values",
    [
        _offer(sessions=None),
        _offer(sessions=[{**_offer()["sessions"][0], "attempts": -1}]),
        _offer(sessions=[{**_offer()["sessions"][0], "address": "no base64"}]),
        _offer(sessions=[_offer()["sessions"][0]] * (moving_sessions.MOST_SESSIONS + 1)),
        _offer(sessions=[{**_offer()["sessions"][0], "member": None}]),
        _offer(sessions=[{**_offer()["sessions"][0], "server": None}]),
        _offer(sessions=[{**_offer()["sessions"][0], "ready": None}]),
    ],
)
def test_nonsense_is_refused(values: dict[str, object]):
    """Every field has its type and its bound."""
    with pytest.raises(ControlError, match="moving sessions"):
        moving_sessions.offer(values)


def test_pipes_have_two_descriptors_more():
    """Client, server, and reader and writer of each pipe that holds bytes."""
    assert descriptors_of(OPEN) == 4
    empty = msgspec.structs.replace(OPEN, server=OPEN.client)
    assert descriptors_of(empty) == 2
    assert descriptors_of(QUEUED) == 1
