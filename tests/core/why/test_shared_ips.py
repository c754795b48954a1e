"""Why a shared IP is served here or not, and why a session with a router is down."""

import pytest
from support.values.observations import NOW, observations, supervised
from support.values.shared_ips import (
    announcing,
    bgp,
    neighbor,
    session,
    shared_ip,
    shared_status,
    with_shared,
)
from support.values.snapshots import track

from appliance.core.announce.announce_or_withdraw import Gate, after, begun
from appliance.core.status.assessment import assess
from appliance.core.status.status import ProgramState
from appliance.core.why.explanation import Decider, Evidence, Explanation
from appliance.core.why.subjects import meant
from appliance.core.why.why import explain
from appliance.model.snapshot.shared_ip import Bgp, Engine, Unhealthy
from appliance.model.snapshot.virtual_router import TrackKind
from appliance.wire.lines.announce_status import AnnounceStatus, SharedIpStatus

pytestmark = pytest.mark.pure

TRACK = track("servers", kind=TrackKind.POOL, target="routers")
OF_OTHER = bgp(neighbor(), engine=Engine.TABLE)


def why(
    name: str, announce: AnnounceStatus | None, *, by: Bgp | None = None, **changes: object
) -> Explanation:
    """Return the explanation of a name, where `announce` answers this; `changes` are of the shared IP."""
    snapshot = with_shared(shared_ip(**changes), by=by)
    found = observations(snapshot=snapshot, announce=announce)
    about = Evidence(
        snapshot=snapshot,
        observations=found,
        status=assess(found, NOW),
        now=NOW,
        moment=lambda at: f"<{at:g}>",
        supervisorctl="supervisorctl -s S",
    )
    [subject] = meant(name, snapshot)
    return explain(subject, about)


def of(shared: SharedIpStatus, *, up: bool = True, engine: str = "bird") -> AnnounceStatus:
    """Return an answer with one shared IP and the session that carries it."""
    return announcing(shared, by=(session(state="Established" if up else "Active", error=""),), engine=engine)


@pytest.mark.parametrize("name", ["ingress-all", "shared/ingress-all", "198.51.100.10", "2001:db8:10::10"])
def test_a_served_one(name: str):
    """By its name or an address: since when, who has learnt it, who else has it, and how to leave."""
    found = why(name, of(shared_status()), track=(TRACK,))
    assert (found.kind, found.state, found.decided_by, found.since) == (
        "shared",
        "serving",
        Decider.TRACK,
        100.0,
    )
    assert found.answer == "ingress-all is serving on this node since <100> (1m 40s): all tracks are up."
    assert found.reasons == ("It is announced to tor-a.", "lb-1, lb-2 have it, too.")
    assert [each.command for each in found.changes] == ["appliance leave"]


def test_a_router_that_has_not_learnt_it():
    """The session's state and error say why; without tracks the file has decided."""
    down = announcing(
        shared_status(announced_to=(), neighbors=("tor-a", "tor-x"), others=("lb-1",)),
        by=(session(state="Active", error="Socket: Connection refused"),),
    )
    found = why("ingress-all", down)
    assert found.decided_by is Decider.CONFIGURATION
    assert found.reasons == (
        "tor-a has not learnt it: the BGP session is Active: Socket: Connection refused.",
        "tor-x has not learnt it: the BGP session is unknown.",
        "lb-1 has it, too.",
    )


def test_one_for_no_neighbour():
    """It is said that nobody is to learn it."""
    found = why("ingress-all", of(shared_status(neighbors=(), announced_to=(), others=())))
    assert found.reasons == (
        "No neighbour of this node is to learn it: see `neighbors` of both.",
        "No other known node has it.",
    )


@pytest.mark.parametrize(("state", "table"), [("serving", 198), ("drained", 199)])
def test_with_another_daemon_the_table_is_named(state: str, table: int):
    """Whether it is announced is not known here."""
    found = why("ingress-all", of(shared_status(state=state), engine="table"), by=OF_OTHER)
    assert f"the kernel's table {table}" in " ".join(found.reasons)


@pytest.mark.parametrize(
    ("state", "unhealthy", "part"),
    [
        ("drained", Unhealthy.LAST_RESORT, "Routers use this node only if no other serves the address"),
        ("withdrawn", Unhealthy.WITHDRAW, "With `unhealthy: last-resort` it would be announced as drained"),
        ("withdrawn", Unhealthy.LAST_RESORT, "the address stays, and open connections go on"),
    ],
)
def test_a_track_is_down(state: str, unhealthy: Unhealthy, part: str):
    """What routers do, and which track to mend."""
    shared = shared_status(state=state, reason="servers is down: none is up", announced_to=())
    found = why("ingress-all", of(shared), track=(TRACK, track("port")), unhealthy=unhealthy)
    assert found.decided_by is Decider.TRACK
    assert part in " ".join(found.reasons)
    assert [each.command for each in found.changes] == [
        "appliance why routers --kind pool",
        None,
        "appliance bgp status",
    ]


def test_an_operator_has_sent_it_away():
    """The reason is the state's own; `reload` has it back."""
    left = after(begun(0.0), Gate(tracks=True, leaves=True), unhealthy=Unhealthy.WITHDRAW, drain=1.0, now=1.0)
    found = why("ingress-all", of(shared_status(state=left.state.value, reason=left.reason)))
    assert found.decided_by is Decider.OPERATOR
    assert [each.command for each in found.changes] == ["appliance reload"]


def test_one_that_starts_has_no_decider():
    """It waits for verdicts, or for `linger`."""
    found = why("ingress-all", of(shared_status(state="starting", reason="")))
    assert found.decided_by is Decider.NOBODY
    assert found.reasons[0].startswith("It is not announced yet")


@pytest.mark.parametrize("name", ["ingress-all", "tor-a"])
@pytest.mark.parametrize("announce", [None, announcing(by=())])
def test_nobody_knows(name: str, announce: AnnounceStatus | None):
    """Without the program, or before it has applied the configuration."""
    found = why(name, announce)
    assert (found.state, found.decided_by) == ("unknown", Decider.PROGRAM)
    assert "the program announce does not answer" in found.answer


def test_a_session_that_is_up():
    """With the number of routes, and BFD."""
    found = why("tor-a", announcing(by=(session(),)))
    assert found.answer == "The session with tor-a (10.0.0.1, AS 64600) is up since <50> (2m 30s)."
    assert found.reasons == ("1 routes are announced to it.", "BFD is up.")
    assert why("10.0.0.1", announcing(by=(session(bfd=""),))).reasons == ("1 routes are announced to it.",)


def test_bfd_that_is_down_has_its_causes():
    """The router, the times, or a firewall."""
    found = why("tor-a", announcing(by=(session(bfd="Down"),)))
    assert "UDP port 3784 (4784 with `multihop`) is blocked" in found.reasons[1]


@pytest.mark.parametrize(
    ("error", "part"),
    [
        ("Socket: Connection refused", "Nothing accepts at 10.0.0.1, TCP port 179"),
        ("Error: Bad peer AS: 64666", "here this node is 64512 and the router 64600"),
        ("Received: Hold timer expired", "Nothing was received from it for 9 s"),
        ("BFD session down", "BFD detected that the router"),
        ("Socket: No route to host", "needs `multihop`"),
        ("Socket: Network is unreachable", "needs `multihop`"),
        ("", "a firewall on TCP port 179, a password that differs"),
    ],
)
def test_a_session_that_is_down(error: str, part: str):
    """Each error of BIRD has its sentence, and silence has its causes."""
    found = why("tor-a", announcing(by=(session(state="Active", error=error),)))
    assert found.decided_by is Decider.PEER
    assert part in found.reasons[0]
    assert error in found.answer


@pytest.mark.parametrize("state", ["", "Idle"])
def test_a_session_without_bird(state: str):
    """What keeps BIRD from running is the answer."""
    found = why("tor-a", announcing(by=(session(state=state),), trouble="BIRD is not installed"))
    assert found.decided_by is Decider.PROGRAM
    assert "BIRD is not installed" in found.answer


def test_a_session_of_another_daemon():
    """It is not ours, and the examples are named."""
    found = why("tor-a", None, by=OF_OTHER)
    assert found.decided_by is Decider.OTHER_PROGRAM
    assert [each.command for each in found.changes] == [
        "appliance bgp example frr",
        "appliance bgp example bird",
    ]


def test_a_program_that_does_not_run_has_its_reason():
    """Supervisord's words are part of the answer."""
    snapshot = with_shared()
    gone = supervised("announce", ProgramState.FATAL, reason="exit status 1")
    found = observations(snapshot=snapshot, supervised=(gone,))
    about = Evidence(
        snapshot=snapshot,
        observations=found,
        status=assess(found, NOW),
        now=NOW,
        moment=str,
        supervisorctl="",
    )
    [subject] = meant("ingress-all", snapshot)
    assert "(exit status 1)" in explain(subject, about).answer
