"""What was before, of the kept events: how often, when, by which cause, and since when a state holds."""

import pytest
from support.values.observations import NOW, observations
from support.values.shared_ips import bgp, neighbor, shared_ip, with_shared
from support.values.snapshots import frontend, group, pool, server, snapshot, virtual_router

from appliance.core.announce.announce_or_withdraw import LEAVES
from appliance.core.status.assessment import assess
from appliance.core.why.explanation import Evidence, Explanation, Kind
from appliance.core.why.subjects import meant
from appliance.core.why.why import explain
from appliance.model.operator_events import EventKind, OperatorEvent
from appliance.wire.lines.announce_status import AnnounceStatus, NeighborStatus, SharedIpStatus
from appliance.wire.lines.vrrp_status import RouterStatus, VrrpStatus

pytestmark = pytest.mark.pure

LATER = NOW + 200_000.0
"""Now, of these tests: a day and more after the moment that the values of observations know."""


def event(kind: EventKind, ago: float, **more: str) -> OperatorEvent:
    """Return an event about the only server of the only pool."""
    return OperatorEvent(**{"when": LATER - ago, "kind": kind, "subject": "masters/m0", **more})


def history(
    name: str, kind: Kind, *events: OperatorEvent, running: RouterStatus | None = None
) -> Explanation:
    """Return the explanation of one thing after these events; vrrp runs where `running` is given."""
    vrrp = VrrpStatus(routers=(running,)) if running else None
    made = snapshot(
        groups=[group(frontends=(frontend("kube-api", pool="masters"),))],
        pools=[pool(name="masters", servers=(server(name="m0"),)), pool(name="nobody", servers=())],
        virtual_routers=[virtual_router(name="api")],
    )
    found = observations(snapshot=made, vrrp=vrrp)
    about = Evidence(
        snapshot=made,
        observations=found,
        status=assess(found, LATER),
        now=LATER,
        moment=lambda at: f"<{LATER - at:g} s ago>",
        supervisorctl="supervisorctl -s S",
        events=events,
    )
    [subject] = meant(name, made, kind=kind)
    return explain(subject, about)


def down(ago: float, cause: str = "L7STS", detail: str = "500; 0 of 1 up") -> OperatorEvent:
    """Return that the server went down."""
    return event(EventKind.SERVER_DOWN, ago, before="up", after="down", cause=cause, detail=detail)


def test_a_server_that_flaps():
    """How often within the hour, when, and what the check found each time."""
    found = history("masters/m0", Kind.SERVER, down(5000), down(3000), down(2000, "L4CON", ""), down(60))
    [said] = found.history
    assert said == (
        "It went down 3 times in the last 1h: <3000 s ago> (L7STS, 500; 0 of 1 up), <2000 s ago> (L4CON),"
        " <60 s ago> (L7STS, 500; 0 of 1 up)."
    )


def test_of_many_the_newest_are_told():
    """All are counted."""
    [said] = history("masters/m0", Kind.SERVER, *(down(900 - at) for at in range(9))).history
    assert said.startswith("It went down 9 times in the last 1h, the last ones: <895 s ago>")
    assert said.count("s ago") == 4


def test_a_quiet_hour():
    """Then the day counts; what is older than that does not."""
    [said] = history("masters/m0", Kind.SERVER, down(90_000), down(50_000, detail="")).history
    assert said == "It went down once in the last 1d: <50000 s ago> (L7STS)."
    assert history("masters/m0", Kind.SERVER, down(90_000)).history == ()


def test_what_an_operator_said_last():
    """Of a server: it explains why it was away."""
    events = (event(EventKind.SERVER_MAINT, 90), event(EventKind.SERVER_READY, 40, after="up"))
    assert history("masters/m0", Kind.SERVER, *events).history == (
        "An operator made it ready again at <40 s ago>.",
    )


def test_others_are_left_out():
    """An event of another server, and of another kind of thing with the same name."""
    other = OperatorEvent(when=LATER, kind=EventKind.SERVER_DOWN, subject="masters/m1")
    pool_empty = OperatorEvent(when=LATER, kind=EventKind.POOL_EMPTY, subject="masters/m0")
    assert history("masters/m0", Kind.SERVER, other, pool_empty).history == ()


def test_a_pool():
    """Since when it is empty, by whose loss, and how often it was; no board says the first."""
    events = (
        event(EventKind.LAST_SERVER, 70, subject="masters", cause="server-down m1", detail="1 of 2 up"),
        event(EventKind.POOL_EMPTY, 60, subject="masters", cause="server-down m0", detail="0 of 2 up"),
        event(EventKind.POOL_SERVES, 50, subject="masters"),
        event(EventKind.POOL_EMPTY, 40, subject="masters", cause="server-down m0", detail="0 of 2 up"),
    )
    found = history("masters", Kind.POOL, *events)
    empty, left = found.history
    assert empty == (
        "It was empty 2 times in the last 1h: <60 s ago> (server-down m0, 0 of 2 up), <40 s ago> (server-down"
        " m0, 0 of 2 up)."
    )
    assert left == "One server was left once in the last 1h: <70 s ago> (server-down m1, 1 of 2 up)."


def test_a_frontend():
    """When it was full, and when a worker of its proxy died; that of another group does not count."""
    name, program = "kube-api", "proxy-api"
    full = event(EventKind.FRONTEND_FULL, 30, subject=name, program=program, detail="9 connections")
    elsewhere = event(EventKind.FRONTEND_FULL, 20, subject=name, program="proxy-ingress")
    died = event(EventKind.WORKER_DIED, 10, subject=f"{program} worker 3.0", detail="signal 9")
    assert history(name, Kind.FRONTEND, full, elsewhere, died).history == (
        "It was full once in the last 1h: <30 s ago> (9 connections).",
        "A worker of it died once in the last 1h: <10 s ago> (signal 9).",
    )


def vip(
    kind: EventKind, ago: float, after: str, cause: str, before: str = "backup", **more: str
) -> OperatorEvent:
    """Return a transition of the virtual IP."""
    return event(kind, ago, subject="api", before=before, after=after, cause=cause, **more)


MOVES = (
    vip(EventKind.VIP_ACTIVE, 900, "active", "active-down"),
    vip(
        EventKind.VIP_BACKUP,
        600,
        "backup",
        "handed-over",
        before="active",
        detail="peer 192.0.2.2, priority 90",
    ),
    vip(EventKind.VIP_ACTIVE, 300, "active", "active-left"),
)


def test_a_virtual_ip_that_moved():
    """Each change with its cause, the newest first; that which vrrp itself tells of is not said twice."""
    running = RouterStatus(name="api", state="active", since=LATER - 300)
    found = history("api", Kind.VIRTUAL_IP, *MOVES, running=running)
    assert found.since == LATER - 300
    assert found.history == (
        "It changed its state 3 times in the last hour.",
        "It became backup at <600 s ago>: it was handed over (peer 192.0.2.2, priority 90).",
        "It became active at <900 s ago>: advertisements of the active router stopped arriving.",
    )


def test_sessions_that_moved_with_a_virtual_ip():
    """Those of its own addresses count, and what stayed or was lost."""
    [address] = virtual_router(name="api").addresses
    about = {"subject": address.partition("/")[0]}
    found = history(
        "api",
        Kind.VIRTUAL_IP,
        event(EventKind.SESSIONS_MOVED, 90, detail="40 in 0.3 s to 10.0.0.2", **about),
        event(EventKind.SESSIONS_MOVED, 80, detail="3 in 0.1 s to 10.0.0.2", subject="10.9.9.9"),
        event(EventKind.SESSIONS_LEFT, 70, detail="2: its server is on this node", **about),
        event(EventKind.SESSIONS_LOST, 60, detail="40: no answer", **about),
    )
    assert found.history == (
        "Its sessions moved to another node once in the last 1h: <90 s ago> (40 in 0.3 s to 10.0.0.2).",
        "Sessions of it stayed on this node once in the last 1h: <70 s ago> (2: its server is on this node).",
        "Sessions of it ended as they moved once in the last 1h: <60 s ago> (40: no answer).",
    )


def test_a_virtual_ip_of_which_nobody_tells():
    """While vrrp is gone the events are all there is; a cause that we do not know is told as it is."""
    strange = vip(EventKind.VIP_FAULT, 10, "fault", "moon-phase", before="active")
    unexplained = vip(EventKind.VIP_BACKUP, 5, "backup", "", before="fault")
    found = history("api", Kind.VIRTUAL_IP, strange, unexplained)
    assert found.history == (
        "It became backup at <5 s ago>: the cause is unknown.",
        "It became fault at <10 s ago>: moon-phase.",
    )


def test_a_split_brain():
    """When, and who the other one was."""
    split = event(EventKind.SPLIT_BRAIN, 7, subject="api", cause="peer 192.0.2.2", detail="this router stays")
    assert history("api", Kind.VIRTUAL_IP, split).history == (
        "Two were active once in the last 1h: <7 s ago> (peer 192.0.2.2, this router stays).",
    )


@pytest.mark.parametrize(
    ("events", "since"),
    [
        ((), 5.0),
        ((vip(EventKind.VIP_ACTIVE, 900, "active", "active-down"),), 5.0),
        (
            (
                vip(EventKind.VIP_ACTIVE, 900, "active", "active-down"),
                vip(EventKind.VIP_ACTIVE, 5, "active", "resumed", before="initialize"),
            ),
            900.0,
        ),
        (
            (
                vip(EventKind.VIP_STOPPED, 900, "initialize", "stopped", before="active"),
                vip(EventKind.VIP_ACTIVE, 5, "active", "resumed", before="initialize"),
            ),
            5.0,
        ),
    ],
    ids=["no events", "an older change", "gone on over a restart", "stopped in between"],
)
def test_since_when_a_virtual_ip_is_here(events: tuple[OperatorEvent, ...], since: float):
    """What vrrp knows counts, but a restart over which it went on is no new beginning."""
    running = RouterStatus(name="api", state="active", since=LATER - 5)
    assert history("api", Kind.VIRTUAL_IP, *events, running=running).since == LATER - since


def test_since_when_of_a_state_that_no_board_dates():
    """The event that began it says that; one of another state does not."""
    assert history("nobody", Kind.POOL).state == "empty"
    emptied = event(EventKind.POOL_EMPTY, 30, subject="nobody")
    assert history("nobody", Kind.POOL, emptied).since == LATER - 30
    assert (
        history("nobody", Kind.POOL, emptied, event(EventKind.POOL_SERVES, 9, subject="nobody")).since is None
    )


def shared(kind: EventKind, ago: float, before: str, after: str, cause: str) -> OperatorEvent:
    """Return a change of the only shared IP."""
    return event(kind, ago, subject="ingress", before=before, after=after, cause=cause)


SHARED_EVENTS = (
    shared(EventKind.IP_DRAINED, 3000, "serving", "drained", "router is down: refused"),
    shared(EventKind.IP_ANNOUNCED, 2000, "drained", "serving", "all tracks are up"),
    shared(EventKind.IP_DRAINED, 900, "serving", "drained", LEAVES),
    shared(EventKind.IP_WITHDRAWN, 890, "drained", "withdrawn", LEAVES),
)


def shared_history(*events: OperatorEvent, name: str = "ingress", state: str = "withdrawn") -> Explanation:
    """Return the explanation of a shared IP or a neighbour after these events; "" if nobody answers."""
    running = SharedIpStatus(name="ingress", state=state, since=LATER - 890, reason=LEAVES)
    neighbors = (NeighborStatus(name="tor-a", state="Established", since=LATER - 5),)
    announce = AnnounceStatus(engine="bird", addresses=(running,), neighbors=neighbors) if state else None
    made = with_shared(shared_ip("ingress"), by=bgp(neighbor()))
    found = observations(snapshot=made, announce=announce)
    about = Evidence(
        snapshot=made,
        observations=found,
        status=assess(found, LATER),
        now=LATER,
        moment=lambda at: f"<{LATER - at:g} s ago>",
        supervisorctl="supervisorctl -s S",
        events=events,
    )
    [subject] = meant(name, made)
    return explain(subject, about)


def test_a_shared_ip_that_came_and_went():
    """Each change before the present one, with its reason; the program tells the present one."""
    assert shared_history(*SHARED_EVENTS).history == (
        "It changed its state 4 times in the last hour.",
        "It became drained at <900 s ago>: this node leaves its addresses to others.",
        "It became serving at <2000 s ago>: all tracks are up.",
        "It became drained at <3000 s ago>: router is down: refused.",
    )


def test_a_shared_ip_of_which_nobody_tells():
    """Without the program the last change is history, too."""
    told = shared_history(*SHARED_EVENTS[-2:], state="").history
    assert told[0] == "It became withdrawn at <890 s ago>: this node leaves its addresses to others."


def test_since_when_a_shared_ip_is_served():
    """A restart of the program changes nothing: the event tells since when."""
    assert shared_history(*SHARED_EVENTS[:2], state="serving").since == LATER - 2000
    assert shared_history(*SHARED_EVENTS, state="serving").since == LATER - 890


def test_a_shared_ip_that_no_other_node_had():
    """It is no state of this node, and counts as no change of it."""
    alone = event(EventKind.LAST_PATH, 60, subject="ingress", detail="until then lb-1")
    told = shared_history(*SHARED_EVENTS[:2], alone, state="serving").history
    assert told[-1] == "No other node had it once in the last 1h: <60 s ago> (until then lb-1)."
    assert told[:-1] == shared_history(*SHARED_EVENTS[:2], state="serving").history


def test_a_session_without_bfd():
    """It is a session that was up all the same."""
    event_ = event(EventKind.BFD_DOWN, 60, subject="tor-a", after="Established", detail="10.0.0.1: Down")
    assert shared_history(event_, name="tor-a").history == (
        "Its session was without BFD once in the last 1h: <60 s ago> (10.0.0.1: Down).",
    )


def test_a_session_that_went_down():
    """How often, when, and with which words; events of a shared IP of the same name are not its own."""
    down = event(EventKind.BGP_SESSION_DOWN, 60, subject="tor-a", after="Active", detail="Hold timer expired")
    other = shared(EventKind.IP_DRAINED, 50, "serving", "drained", "x")
    assert shared_history(down, other, name="tor-a", state="serving").history == (
        "Its session went down once in the last 1h: <60 s ago> (Hold timer expired).",
    )
