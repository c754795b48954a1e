"""The table of the election: its drawing is what it says, and what cannot happen is reported."""

from collections.abc import Callable

import pytest
from support.vrrp.elections import heard, terms, tick_at

from appliance.core.vrrp import election_table
from appliance.core.vrrp.election import Effect, Election, RouterState, UnexpectedEvent
from appliance.core.vrrp.election_table import ElectionEvent, ElectionState, Row

pytestmark = pytest.mark.pure

ROWS = [each for each in vars(election_table).values() if isinstance(each, Row)]
LANES = {state: 4 + 11 * place for place, state in enumerate(ElectionState)}
WIDTH = max(LANES.values()) + 4


def changes() -> dict[tuple[ElectionState, ElectionState], list[ElectionEvent]]:
    """Return what changes the state, in the order in which it is drawn: by states."""
    found: dict[tuple[ElectionState, ElectionState], list[ElectionEvent]] = {}
    for before in ElectionState:
        for after in ElectionState:
            events = [
                row.event
                for row in ROWS
                if before is not after and before in row.steps and row.steps[before].then is after
            ]
            if events:
                found[before, after] = events
    return found


def arrow(before: ElectionState, after: ElectionState) -> str:
    """Return one line of the drawing: an arrow from one state's lane to the other's."""
    line = [" "] * WIDTH
    for lane in LANES.values():
        line[lane] = "|"
    start, end = LANES[before], LANES[after]
    step = 1 if end > start else -1
    for place in range(start, end, step):
        line[place] = "-"
    line[start] = "o"
    line[end - step] = ">" if step == 1 else "<"
    return "".join(line)


def drawing() -> str:
    """Return the state machine as it is drawn in the table's docstring."""
    names = "".join(f"{state.name:<11}" for state in ElectionState)
    arrows = [f"{arrow(*states)}{', '.join(each.name for each in why)}" for states, why in changes().items()]
    return "\n".join(f"    {line}".rstrip() for line in (names, *arrows))


def initial() -> Election:
    """Return an election that has not started."""
    return Election(terms())


def backup() -> Election:
    """Return a Backup."""
    election = initial()
    election.start(0.0)
    return election


def active() -> Election:
    """Return an active."""
    election = backup()
    tick_at(election)
    return election


def moving() -> Election:
    """Return an active that hands over."""
    election = active()
    election.move(10.0)
    return election


def stopping() -> Election:
    """Return an active that hands over and ends."""
    election = active()
    election.stop(10.0)
    return election


def faulty() -> Election:
    """Return one in fault."""
    election = backup()
    election.fault(1.0)
    return election


STATES: dict[ElectionState, Callable[[], Election]] = {
    ElectionState.INITIALIZE: initial,
    ElectionState.BACKUP: backup,
    ElectionState.ACTIVE: active,
    ElectionState.MOVING: moving,
    ElectionState.STOPPING: stopping,
    ElectionState.FAULT: faulty,
}

EVENTS: dict[ElectionEvent, Callable[[Election], list[Effect]]] = {
    ElectionEvent.STARTUP: lambda election: election.start(10.0),
    ElectionEvent.RESUME: lambda election: election.resume(10.0),
    ElectionEvent.SHUTDOWN: lambda election: election.stop(10.0),
    ElectionEvent.MOVE: lambda election: election.move(10.0),
    ElectionEvent.FAULT: lambda election: election.fault(10.0),
    ElectionEvent.RECOVERY: lambda election: election.recover(10.0),
    ElectionEvent.ADVERT_ZERO: lambda election: election.receive(heard(priority=0), 10.0),
    ElectionEvent.ADVERT_HIGHER: lambda election: election.receive(heard(priority=150), 10.0),
    ElectionEvent.ADVERT_LOWER: lambda election: election.receive(heard(priority=50), 10.0),
    ElectionEvent.GROUP_ACTIVE: lambda election: election.follow_group(RouterState.ACTIVE, 10.0),
    ElectionEvent.GROUP_BACKUP: lambda election: election.follow_group(RouterState.BACKUP, 10.0),
    ElectionEvent.PRIORITY: lambda election: election.set_priority(90, 10.0),
    ElectionEvent.INTERVAL: lambda election: election.change_settings(terms(advert=2.0), 10.0),
}
"""How each event is caused from outside; timers expire only in the states that have them."""


def test_drawing_is_the_table():
    """The drawing in the docstring has exactly the table's changes of state."""
    assert election_table.__doc__ is not None
    assert drawing() in election_table.__doc__, drawing()


def test_table_has_every_event_once():
    """Each event has one row, and each state is entered and left by some event."""
    assert sorted(row.event for row in ROWS) == sorted(ElectionEvent)
    assert {after for _, after in changes()} == {before for before, _ in changes()} == set(ElectionState)


@pytest.mark.parametrize("state", list(ElectionState))
@pytest.mark.parametrize("event", list(EVENTS))
def test_table_is_what_happens(state: ElectionState, event: ElectionEvent):
    """Each event leads where the table says, and one that cannot happen is reported and harmless."""
    election = STATES[state]()
    before, deadline = election.state, election.deadline
    effects = EVENTS[event](election)
    steps = next(row.steps for row in ROWS if row.event is event)
    if state in steps:
        assert election._state is steps[state].then
        assert not any(isinstance(each, UnexpectedEvent) for each in effects)
    else:
        assert effects == [UnexpectedEvent(event=event, state=state)]
        assert (election.state, election.deadline) == (before, deadline)


def test_events_that_cannot_happen():
    """These are the ones that are reported; timers are asked only in the states that have them."""
    missing = [
        (row.event.value, state.value)
        for row in ROWS
        for state in ElectionState
        if state not in row.steps and row.event in EVENTS
    ]
    assert missing == [
        ("startup", "active"),
        ("startup", "moving"),
        ("startup", "stopping"),
        ("startup", "fault"),
        ("resume", "stopping"),
        ("recovery", "initialize"),
        ("recovery", "active"),
        ("recovery", "moving"),
        ("recovery", "stopping"),
        ("group-active", "stopping"),
        ("group-backup", "initialize"),
    ]
