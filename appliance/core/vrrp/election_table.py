"""The state machine of an election, as a table: RFC 9568 section 6.4, with FAULT and the hand-over.

`Election` looks up each event in its state here, changes the state, and runs the action. An event that is
missing for a state cannot happen in it: it is reported as `UnexpectedEvent`, and the state stays. The events
that change the state, each arrow from `o` to its head:

    INITIALIZE BACKUP     ACTIVE     MOVING     STOPPING   FAULT
        o--------->|          |          |          |          |   STARTUP
        o-------------------->|          |          |          |   RESUME, GROUP_ACTIVE
        o----------------------------------------------------->|   FAULT
        |<---------o          |          |          |          |   SHUTDOWN
        |          o--------->|          |          |          |   ACTIVE_DOWN_TIMER, GROUP_ACTIVE
        |          o------------------------------------------>|   FAULT
        |          |<---------o          |          |          |   ADVERT_HIGHER, GROUP_BACKUP
        |          |          o--------->|          |          |   MOVE
        |          |          o-------------------->|          |   SHUTDOWN
        |          |          o------------------------------->|   FAULT
        |          |<--------------------o          |          |   RELEASE_TIMER
        |          |          |<---------o          |          |   HAND_OVER_TIMER
        |          |          |          o--------->|          |   SHUTDOWN
        |          |          |          o-------------------->|   FAULT
        |<------------------------------------------o          |   FAULT, RELEASE_TIMER, HAND_OVER_TIMER
        |<-----------------------------------------------------o   SHUTDOWN
        |          |<------------------------------------------o   RECOVERY, GROUP_BACKUP
        |          |          |<-------------------------------o   GROUP_ACTIVE
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Concatenate, Final, Generic, ParamSpec

from appliance.core.vrrp.election_actions import ElectionActions as Actions
from appliance.core.vrrp.election_messages import Cause, Effect, ReceivedAdvert, Resumption, RouterState

_Given = ParamSpec("_Given")


class ElectionState(StrEnum):
    """The states of RFC 9568 section 6.3, FAULT (keepalived's), and two parts of Active.

    MOVING and STOPPING have sent priority 0 and hold the addresses until a successor advertises: MOVING
    continues as Backup, STOPPING ends. The RFC drops the addresses at once, and no router has them for a skew
    time.
    """

    INITIALIZE = "initialize"
    BACKUP = "backup"
    ACTIVE = "active"
    MOVING = "moving"
    STOPPING = "stopping"
    FAULT = "fault"

    @property
    def shown(self) -> RouterState:
        """The state that others see: a router is active as long as it holds the addresses."""
        return RouterState.ACTIVE if self in _PARTS_OF_ACTIVE else RouterState(self.value)


_PARTS_OF_ACTIVE: Final = frozenset({ElectionState.MOVING, ElectionState.STOPPING})


class ElectionEvent(StrEnum):
    """What can happen to an election.

    The advertisements are another router's: ZERO has priority 0, HIGHER wins against this router by its
    priority or, if both are equal, by its address, LOWER loses, EQUAL is a tie that another member of the
    sync group decides. REPEAT_TIMER, RELEASE_TIMER and HAND_OVER_TIMER belong to a hand-over: send priority 0
    again, a successor advertised, no successor advertised in time.
    """

    STARTUP = "startup"
    RESUME = "resume"
    SHUTDOWN = "shutdown"
    MOVE = "move"
    FAULT = "fault"
    RECOVERY = "recovery"
    ACTIVE_DOWN_TIMER = "active-down-timer"
    ADVER_TIMER = "adver-timer"
    REPEAT_TIMER = "repeat-timer"
    RELEASE_TIMER = "release-timer"
    HAND_OVER_TIMER = "hand-over-timer"
    ADVERT_ZERO = "advert-zero"
    ADVERT_HIGHER = "advert-higher"
    ADVERT_LOWER = "advert-lower"
    ADVERT_EQUAL = "advert-equal"
    GROUP_ACTIVE = "group-active"
    GROUP_BACKUP = "group-backup"
    PRIORITY = "priority"
    INTERVAL = "interval"


@dataclass(frozen=True, slots=True)
class Step(Generic[_Given]):
    """What one event does in one state: the next state, and the action that runs in it."""

    then: ElectionState
    action: Callable[Concatenate[Actions, _Given], list[Effect]]


@dataclass(frozen=True, slots=True)
class Row(Generic[_Given]):
    """One event in all states where it can happen."""

    event: ElectionEvent
    steps: Mapping[ElectionState, Step[_Given]]


_INITIALIZE: Final = ElectionState.INITIALIZE
_BACKUP: Final = ElectionState.BACKUP
_ACTIVE: Final = ElectionState.ACTIVE
_MOVING: Final = ElectionState.MOVING
_STOPPING: Final = ElectionState.STOPPING
_FAULT: Final = ElectionState.FAULT

STARTUP: Final[Row[Cause, float]] = Row(
    ElectionEvent.STARTUP,
    {
        _INITIALIZE: Step(_BACKUP, Actions.join),
        # A fault that ended before the start has made it a Backup; so has its former sync group.
        _BACKUP: Step(_BACKUP, Actions.stay),
    },
)
RESUME: Final[Row[Resumption, float]] = Row(
    ElectionEvent.RESUME,
    {
        _INITIALIZE: Step(_ACTIVE, Actions.stay_as_active),
        # Members that come from another sync group: GROUP_ACTIVE follows.
        _BACKUP: Step(_BACKUP, Actions.stay),
        _ACTIVE: Step(_ACTIVE, Actions.stay),
        _MOVING: Step(_MOVING, Actions.stay),
        _FAULT: Step(_FAULT, Actions.stay),
    },
)
SHUTDOWN: Final[Row[float]] = Row(
    ElectionEvent.SHUTDOWN,
    {
        _INITIALIZE: Step(_INITIALIZE, Actions.stop_again),
        _BACKUP: Step(_INITIALIZE, Actions.leave),
        _ACTIVE: Step(_STOPPING, Actions.begin_hand_over),
        _MOVING: Step(_STOPPING, Actions.stop_instead_of_move),
        _STOPPING: Step(_STOPPING, Actions.stay),
        _FAULT: Step(_INITIALIZE, Actions.leave),
    },
)
MOVE: Final[Row[float]] = Row(
    ElectionEvent.MOVE,
    {
        _INITIALIZE: Step(_INITIALIZE, Actions.nothing_to_move),
        _BACKUP: Step(_BACKUP, Actions.nothing_to_move),
        _ACTIVE: Step(_MOVING, Actions.begin_hand_over),
        _MOVING: Step(_MOVING, Actions.stay),
        _STOPPING: Step(_STOPPING, Actions.stay),
        _FAULT: Step(_FAULT, Actions.nothing_to_move),
    },
)
FAULT: Final[Row[Cause, float]] = Row(
    ElectionEvent.FAULT,
    {
        _INITIALIZE: Step(_FAULT, Actions.enter_fault),
        _BACKUP: Step(_FAULT, Actions.enter_fault),
        _ACTIVE: Step(_FAULT, Actions.fault_as_active),
        _MOVING: Step(_FAULT, Actions.fault_while_moving),
        _STOPPING: Step(_INITIALIZE, Actions.fault_while_stopping),
        _FAULT: Step(_FAULT, Actions.stay),
    },
)
RECOVERY: Final[Row[Cause, float]] = Row(
    ElectionEvent.RECOVERY,
    {
        _BACKUP: Step(_BACKUP, Actions.stay),
        _FAULT: Step(_BACKUP, Actions.join),
    },
)
ACTIVE_DOWN_TIMER: Final[Row[Cause, float]] = Row(
    ElectionEvent.ACTIVE_DOWN_TIMER, {_BACKUP: Step(_ACTIVE, Actions.become_active)}
)
ADVER_TIMER: Final[Row[float]] = Row(ElectionEvent.ADVER_TIMER, {_ACTIVE: Step(_ACTIVE, Actions.advertise)})
REPEAT_TIMER: Final[Row[float]] = Row(
    ElectionEvent.REPEAT_TIMER,
    {
        _MOVING: Step(_MOVING, Actions.repeat_priority_zero),
        _STOPPING: Step(_STOPPING, Actions.repeat_priority_zero),
    },
)
RELEASE_TIMER: Final[Row[float]] = Row(
    ElectionEvent.RELEASE_TIMER,
    {
        _MOVING: Step(_BACKUP, Actions.end_move),
        _STOPPING: Step(_INITIALIZE, Actions.release_and_stop),
    },
)
HAND_OVER_TIMER: Final[Row[float]] = Row(
    ElectionEvent.HAND_OVER_TIMER,
    {
        _MOVING: Step(_ACTIVE, Actions.stay_active),
        _STOPPING: Step(_INITIALIZE, Actions.release_and_stop),
    },
)
# The sockets are open before the start and during a fault, so advertisements arrive then, too.
ADVERT_ZERO: Final[Row[ReceivedAdvert, float]] = Row(
    ElectionEvent.ADVERT_ZERO,
    {
        _INITIALIZE: Step(_INITIALIZE, Actions.stay),
        _BACKUP: Step(_BACKUP, Actions.receive_as_backup),
        _ACTIVE: Step(_ACTIVE, Actions.answer),
        _MOVING: Step(_MOVING, Actions.successor_left),
        _STOPPING: Step(_STOPPING, Actions.successor_left),
        _FAULT: Step(_FAULT, Actions.stay),
    },
)
# A router that has sent priority 0 takes any active for its successor, even one of a lower priority.
ADVERT_HIGHER: Final[Row[ReceivedAdvert, float]] = Row(
    ElectionEvent.ADVERT_HIGHER,
    {
        _INITIALIZE: Step(_INITIALIZE, Actions.stay),
        _BACKUP: Step(_BACKUP, Actions.receive_as_backup),
        _ACTIVE: Step(_BACKUP, Actions.lose_to),
        _MOVING: Step(_MOVING, Actions.successor_heard),
        _STOPPING: Step(_STOPPING, Actions.successor_heard),
        _FAULT: Step(_FAULT, Actions.stay),
    },
)
ADVERT_LOWER: Final[Row[ReceivedAdvert, float]] = Row(
    ElectionEvent.ADVERT_LOWER,
    {**ADVERT_HIGHER.steps, _ACTIVE: Step(_ACTIVE, Actions.win_against)},
)
ADVERT_EQUAL: Final[Row[ReceivedAdvert, float]] = Row(
    ElectionEvent.ADVERT_EQUAL,
    {**ADVERT_HIGHER.steps, _ACTIVE: Step(_ACTIVE, Actions.stay)},
)
GROUP_ACTIVE: Final[Row[Cause, float]] = Row(
    ElectionEvent.GROUP_ACTIVE,
    {
        _INITIALIZE: Step(_ACTIVE, Actions.become_active),
        _BACKUP: Step(_ACTIVE, Actions.become_active),
        _ACTIVE: Step(_ACTIVE, Actions.stay),
        _MOVING: Step(_MOVING, Actions.stay),
        # It comes from another group, whose fault was not its own.
        _FAULT: Step(_ACTIVE, Actions.become_active),
    },
)
GROUP_BACKUP: Final[Row[Cause, float]] = Row(
    ElectionEvent.GROUP_BACKUP,
    {
        _BACKUP: Step(_BACKUP, Actions.stay),
        _ACTIVE: Step(_BACKUP, Actions.retreat),
        _MOVING: Step(_MOVING, Actions.stay),
        _STOPPING: Step(_STOPPING, Actions.stay),
        _FAULT: Step(_BACKUP, Actions.join),
    },
)
PRIORITY: Final[Row[int, float]] = Row(
    ElectionEvent.PRIORITY,
    {
        _INITIALIZE: Step(_INITIALIZE, Actions.stay),
        _BACKUP: Step(_BACKUP, Actions.stay),
        _ACTIVE: Step(_ACTIVE, Actions.advertise_change),
        # An advertisement would make the successor wait again.
        _MOVING: Step(_MOVING, Actions.stay),
        _STOPPING: Step(_STOPPING, Actions.stay),
        _FAULT: Step(_FAULT, Actions.stay),
    },
)
INTERVAL: Final[Row[float]] = Row(
    ElectionEvent.INTERVAL,
    {
        _INITIALIZE: Step(_INITIALIZE, Actions.change_expected_interval),
        _BACKUP: Step(_BACKUP, Actions.change_expected_interval),
        _ACTIVE: Step(_ACTIVE, Actions.change_own_interval),
        _MOVING: Step(_MOVING, Actions.change_own_interval),
        _STOPPING: Step(_STOPPING, Actions.change_own_interval),
        _FAULT: Step(_FAULT, Actions.change_expected_interval),
    },
)
