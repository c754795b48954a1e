"""Why a virtual IP is here or not: by what `vrrp` tells of priorities, peers, tracks and faults."""

import pytest
from support.values.observations import NOW, observations
from support.values.snapshots import snapshot, track, virtual_router

from appliance.core.status.assessment import assess
from appliance.core.status.observations import Observations
from appliance.core.status.status import DegradedStart
from appliance.core.why.explanation import Decider, Evidence, Explanation
from appliance.core.why.subjects import meant
from appliance.core.why.why import explain
from appliance.wire.lines.vrrp_status import (
    ConflictStatus,
    HeardRouterStatus,
    PriorityPartStatus,
    RouterStatus,
    TimersStatus,
    TransitionStatus,
    VrrpStatus,
)

pytestmark = pytest.mark.pure


def why(found: Observations) -> Explanation:
    """Return the explanation of the virtual IP `api`."""
    assert not isinstance(found.snapshot, str)
    about = Evidence(
        snapshot=found.snapshot,
        observations=found,
        status=assess(found, NOW),
        now=NOW,
        moment=lambda at: f"<{at:g}>",
        supervisorctl="supervisorctl -s S",
    )
    [subject] = meant("api", about.snapshot)
    return explain(subject, about)


def seen(vrrp: VrrpStatus | None, **changes: object) -> Observations:
    """Return what is found where `vrrp` answers this."""
    tracked = (track("ready", target="127.0.0.1:6443"),)
    routers = [virtual_router(**{"track": tracked, **changes})]
    return observations(snapshot=snapshot(groups=[], pools=[], virtual_routers=routers), vrrp=vrrp)


def peer(state: str = "active", priority: int = 90, last_heard: float = NOW) -> HeardRouterStatus:
    """Return another router that was heard."""
    return HeardRouterStatus(peer="192.0.2.2", priority=priority, last_heard=last_heard, state=state)


def part(**changes: object) -> PriorityPartStatus:
    """Return a tracked thing that is down."""
    return PriorityPartStatus(**{"track": "ready", "weight": 50, "up": False, **changes})


def change(state: str, cause: str, **more: object) -> TransitionStatus:
    """Return a transition."""
    return TransitionStatus(at=150.0, state=state, cause=cause, **more)


DISAGREES = ConflictStatus(kind="version", peer="192.0.2.9", detail="version 2")
NAMELESS = ConflictStatus(kind="address-in-use")
CASES = [
    # what vrrp tells, what the file says besides; state, decider, a part of what is told
    (
        {
            "state": "active",
            "held": True,
            "transitions": (change("active", "active-down", previous="backup"),),
        },
        {},
        "active",
        Decider.ELECTION,
        "api is active on this node since <150> (50s): advertisements of the active router stopped arriving.",
    ),
    (
        {"state": "active", "transitions": (change("active", "sync-group"),), "sync_group": "both"},
        {},
        "active",
        Decider.GROUP,
        "Its addresses are not on the interface yet.",
    ),
    (
        {"state": "active", "held": True, "leaving": True, "parts": (part(up=None),)},
        {},
        "active",
        Decider.ELECTION,
        "Tracked ready, tcp 127.0.0.1:6443 is not judged yet (weight +50).",
    ),
    ({"state": "active", "leaving": True}, {}, "active", Decider.ELECTION, "waits for a successor"),
    ({"state": "active", "heard": (peer("silent"),)}, {}, "active", Decider.ELECTION, "seen as silent"),
    (
        {"state": "active", "heard": (peer(),)},
        {},
        "two-actives",
        Decider.PEER,
        "on 192.0.2.2 (priority 90) at the same time",
    ),
    ({"state": "active", "conflicts": (DISAGREES,)}, {}, "two-actives", Decider.PEER, "and on 192.0.2.9 at"),
    ({"state": "active", "conflicts": (NAMELESS,)}, {}, "two-actives", Decider.PEER, "on another machine at"),
    (
        {"state": "fault", "fault_reasons": ("interface eth0 is down",), "parts": (part(weight=None),)},
        {},
        "fault",
        Decider.INTERFACE,
        "cannot be active here: interface eth0 is down.",
    ),
    (
        {
            "state": "fault",
            "fault_reasons": ("ready is down",),
            "parts": (part(weight=None, detail="refused"), part(track="other", up=True)),
        },
        {},
        "fault",
        Decider.TRACK,
        "Tracked ready, tcp 127.0.0.1:6443 is down: refused (which means fault).",
    ),
    ({"state": "fault"}, {}, "fault", Decider.INTERFACE, "no reason is given"),
    (
        {"state": "backup", "yielded": True, "heard": (peer(),)},
        {},
        "backup",
        Decider.OPERATOR,
        "appliance vip reclaim api",
    ),
    (
        {"state": "backup", "timers": TimersStatus(deadline_in=1.25)},
        {},
        "backup",
        Decider.NOBODY,
        "it listens before it claims. | Its priority here is 100. | Wait: it decides in 1.2 s",
    ),
    ({}, {}, "unknown", Decider.NOBODY, "Wait: it decides by itself"),
    (
        {"state": "backup", "heard": (peer(priority=120),), "parts": (part(),)},
        {},
        "backup",
        Decider.TRACK,
        "this node has 100, not 150, because of ready",
    ),
    (
        {"state": "backup", "heard": (peer(priority=120),), "parts": (part(track="gone", weight=30),)},
        {},
        "backup",
        Decider.TRACK,
        "Mend what gone looks at: appliance vip status api",
    ),
    (
        {"state": "backup", "priority": 60, "heard": (peer(),), "parts": (part(weight=-40, added=-40),)},
        {},
        "backup",
        Decider.TRACK,
        "Its priority here is 60 = 100 -40 ready.",
    ),
    (
        {
            "state": "backup",
            "priority": 40,
            "heard": (peer(),),
            "parts": (part(weight=-1, value=60, up=True, added=-60),),
        },
        {},
        "backup",
        Decider.TRACK,
        "this node has 40, not 100",
    ),
    (
        {"state": "backup", "heard": (peer(priority=120),), "parts": (part(weight=None), part(up=True))},
        {},
        "backup",
        Decider.PEER,
        "192.0.2.2 is active with priority 120, and this node has 100.",
    ),
    (
        {"state": "backup", "heard": (peer(),)},
        {"preempt": False},
        "backup",
        Decider.CONFIGURATION,
        "does not take it from (preempt: false)",
    ),
    (
        {"state": "backup", "heard": (peer(),)},
        {"preempt_delay": 300.0},
        "backup",
        Decider.ELECTION,
        "is about to take over (preempt_delay: 300s).",
    ),
    ({"state": "backup", "heard": (peer(),)}, {}, "backup", Decider.ELECTION, "is about to take over."),
    (
        {"state": "backup", "heard": (peer(),), "uninformed_for": 42.0},
        {},
        "backup",
        Decider.ELECTION,
        "has learnt from the active node which node has which connections, 42 s at most.",
    ),
    (
        {"state": "backup", "heard": (peer(),), "uninformed_for": 42.0, "awaited": ("forward",)},
        {},
        "backup",
        Decider.ELECTION,
        "forward has received the connections of the other nodes (`sync`), 42 s at most.",
    ),
    (
        {
            "state": "backup",
            "heard": (peer(priority=120),),
            "transitions": (change("backup", "higher-priority", previous="active", peer="192.0.2.2"),),
        },
        {},
        "backup",
        Decider.PEER,
        "It changed from active to backup 50s ago: a router of higher priority advertises, 192.0.2.2.",
    ),
    (
        {"state": "backup", "heard": (peer(priority=120),), "transitions": (change("backup", "new-word"),)},
        {},
        "backup",
        Decider.PEER,
        "It changed to backup 50s ago: new-word.",
    ),
]


@pytest.mark.parametrize(("vrrp", "configured", "state", "decided_by", "told"), CASES)
def test_each_situation(  # the columns of a table
    vrrp: dict[str, object], configured: dict[str, object], state: str, decided_by: Decider, told: str
):
    """The state, who decided it, and the sentence that names the cause."""
    router = RouterStatus(
        **{"name": "api", "interface": "eth0", "since": 150.0, "priority": 100, "base": 100, **vrrp}
    )
    found = why(seen(VrrpStatus(routers=(router,)), **configured))
    changes = (f"{each.text}: {each.command}" for each in found.changes)
    assert (found.state, found.decided_by, found.since) == (state, decided_by, 150.0)
    assert told in " | ".join((found.answer, *found.reasons, *changes))


def test_a_vrrp_that_does_not_answer():
    """Nobody knows, and the reason of the program is told where it has one."""
    found = why(seen(None))
    assert (found.state, found.decided_by, found.since) == ("unknown", Decider.PROGRAM, None)
    assert "the program vrrp is gone, or does not answer yet" in found.answer
    broken = observations(
        snapshot=snapshot(virtual_routers=[virtual_router()]), failures={"vrrp": "no capability"}
    )
    assert "vrrp is gone (no capability)" in why(broken).answer
    awaited = snapshot(virtual_routers=[virtual_router()], awaited=True)
    assert "vrrp" in why(observations(snapshot=awaited)).answer


def test_after_the_line_stop():
    """All are left to others until a reload."""
    found = why(seen(VrrpStatus(takes_part=False)))
    assert (found.state, found.decided_by) == ("left", Decider.OPERATOR)
    assert found.changes[0].command == "appliance reload"


def test_the_configuration_that_runs_is_told():
    """What holds for all holds for virtual IPs."""
    made = snapshot(virtual_routers=[virtual_router()])
    found = why(observations(snapshot=made, degraded=DegradedStart(since=1.0, errors=())))
    assert "last good configuration" in found.circumstances[0]
