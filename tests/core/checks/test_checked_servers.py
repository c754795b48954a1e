"""Every server of the configuration: what a new one keeps, begins anew and drops, and the operator's word."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from support.run.tiers import examples
from support.values import snapshots

from appliance.core.checks import checked_servers as checked_servers_module
from appliance.core.checks.check_outcome import CheckOutcome
from appliance.core.checks.check_schedule import HealthSettings, health_settings
from appliance.core.checks.checked_servers import (
    CheckedServer,
    CheckedServers,
    Key,
    UnknownServerError,
    is_literal,
)
from appliance.core.checks.health_record import record
from appliance.core.checks.server_health import HealthEvent, ServerHealth
from appliance.model.check_results import CheckResult
from appliance.model.server_states import AdminState, HealthVerdict, ServerState, state_of
from appliance.model.server_weights import operator_weight
from appliance.model.snapshot.pools import Pool, Server
from appliance.model.snapshot.snapshot import Snapshot

pytestmark = pytest.mark.pure

GOOD = CheckOutcome(result=CheckResult.L4OK)
BAD = CheckOutcome(result=CheckResult.L4CON, detail="connection refused")
CHECK = snapshots.check("tcp", interval=1.0)
A, B, C = (snapshots.server(name, port=8080, check=CHECK) for name in "abc")

CONFIGURATIONS = st.lists(snapshots.pools, max_size=2, unique_by=lambda pool: pool.name).map(
    lambda pools: snapshots.snapshot(pools=pools)
)


def of(servers: Sequence[Server], **changes: object) -> Snapshot:
    """Return a snapshot of one pool."""
    return snapshots.snapshot(pools=[snapshots.pool("pool", servers=servers, **changes)])


def checked_servers(*servers: Server, now: float = 0.0, **changes: object) -> CheckedServers:
    """Return an object that follows these servers, none checked yet."""
    made = CheckedServers(admins={})
    made.apply(of(servers, **changes), now=now)
    return made


def conclude(
    subject: CheckedServers, name: str, outcome: CheckOutcome, *, now: float = 1.0
) -> HealthEvent | None:
    """Conclude a check of one server."""
    return subject.find("pool", name).health.check_ended(outcome, started=now, now=now)


@pytest.mark.parametrize(
    ("host", "literal"),
    [("10.0.0.1", True), ("2001:db8::1", True), ("master-0", False), ("10.0.0", False), ("", False)],
)
def test_only_addresses_are_literal(host: str, literal: bool):  # noqa: FBT001  # a column of the table
    """Anything that is not an address is a name to resolve."""
    assert is_literal(host) is literal


def test_all_servers_are_started_at_first():
    """The first snapshot starts every check, and a few at once."""
    subject = CheckedServers(admins={})
    applied = subject.apply(of([A, B]), now=10.0)
    assert applied.started == {("pool", "a"), ("pool", "b")}
    assert (applied.stopped, applied.events) == (frozenset(), ())
    dues = [checked.health.next_check for checked in subject.servers.values()]
    assert dues == [10.0, 10.0]


def test_first_checks_of_many_servers_are_spread():
    """Three hundred first checks fall over more than a second, never beyond their interval."""
    servers = [snapshots.server(f"server-{index}", check=CHECK) for index in range(300)]
    dues = sorted(member.health.next_check or 0.0 for member in checked_servers(*servers).servers.values())
    assert len(set(dues)) == 64
    assert 0.9 < dues[-1] <= 1.0
    assert max(later - sooner for sooner, later in pairwise(dues)) < 0.1


def test_servers_that_stay_keep_their_state():
    """Adding and removing others disturbs no verdict, streak or deadline."""
    subject = checked_servers(A, B)
    conclude(subject, "a", GOOD)
    kept, due = subject.servers["pool", "a"], subject.servers["pool", "a"].health.next_check
    applied = subject.apply(of([A, C]), now=5.0)
    assert subject.servers["pool", "a"] is kept
    assert kept.health.next_check == due
    assert (applied.started, applied.stopped) == ({("pool", "c")}, {("pool", "b")})
    assert list(subject.servers) == [("pool", "a"), ("pool", "c")]


@pytest.mark.parametrize("change", [{"port": 8081}, {"host": "127.0.0.2"}])
def test_a_server_at_another_address_begins_anew(change: dict[str, object]):
    """Of another machine nothing is known yet."""
    subject = checked_servers(A)
    conclude(subject, "a", BAD)
    applied = subject.apply(of([replace(A, **change)]), now=5.0)
    assert applied.started == applied.stopped == {("pool", "a")}
    assert subject.find("pool", "a").health.state is ServerState.CHECKING


def test_another_check_is_started_with_the_verdict_kept():
    """A server keeps its verdict when its check changes, and the new check begins."""
    subject = checked_servers(A)
    conclude(subject, "a", GOOD)
    changed = replace(A, check=snapshots.check("http"))
    applied = subject.apply(of([changed]), now=5.0)
    assert applied.started == applied.stopped == {("pool", "a")}
    member = subject.find("pool", "a")
    assert (member.health.verdict, member.server) == (HealthVerdict.UP, changed)


def test_a_check_taken_away_is_said():
    """A server that was down and is no longer checked comes up, and that is an event."""
    subject = checked_servers(A)
    conclude(subject, "a", BAD)
    applied = subject.apply(of([replace(A, check=None)]), now=5.0)
    assert applied.events == ((("pool", "a"), HealthEvent.UP),)


def test_pools_that_stay_are_not_looked_at(monkeypatch: pytest.MonkeyPatch):
    """What it costs to find what a reload changes grows with that, and not with the other pools."""
    looked: list[str] = []

    def counted(pool: Pool, server: Server) -> HealthSettings:
        looked.append(pool.name)
        return health_settings(pool, server)

    gone, stays, new = (snapshots.pool(name, servers=[A]) for name in ("gone", "stays", "new"))
    subject = CheckedServers(admins={})
    subject.apply(snapshots.snapshot(pools=[gone, stays]), now=0.0)
    monkeypatch.setattr(checked_servers_module, "health_settings", counted)
    assert not subject.differs(snapshots.snapshot(pools=[stays, gone, snapshots.pool("empty", servers=[])]))
    assert looked == []
    assert subject.differs(snapshots.snapshot(pools=[new, stays, gone]))
    assert subject.differs(snapshots.snapshot(pools=[stays]))
    assert sorted(looked) == ["gone", "new"]


def test_a_pool_that_stays_is_kept_as_it_is():
    """Its servers, with what checks and operators have done to them, and its counts; others are followed."""
    stays, other = snapshots.pool("pool", servers=[A, B]), snapshots.pool("other", servers=[C])
    subject = CheckedServers(admins={})
    first = subject.apply(snapshots.snapshot(pools=[stays, other]), now=0.0)
    conclude(subject, "a", GOOD)
    subject.set_admin("pool", "b", AdminState.DRAIN, now=2.0)
    before = dict(subject.servers)
    changed = replace(other, servers=(replace(C, weight=9),))
    applied = subject.apply(snapshots.snapshot(pools=[changed, stays]), now=5.0)
    assert first.kept == frozenset()
    assert applied.kept == {("pool", "a"), ("pool", "b")}
    assert (applied.started, applied.stopped, applied.events) == (frozenset(), frozenset(), ())
    assert list(subject.servers) == [("other", "c"), ("pool", "a"), ("pool", "b")]
    assert all(subject.servers[key] is before[key] for key in before)
    assert subject.up("pool") == (1, 2)
    assert subject.states == {ServerState.UP: 1, ServerState.DRAIN: 1, ServerState.CHECKING: 1}
    assert subject.find("other", "c").health.weight == 9


def test_only_what_concerns_health_differs():
    """A pool's balance is nothing to the prober; a weight, slow_start, check or address is."""
    subject = CheckedServers(admins={})
    assert subject.differs(of([A]))
    subject.apply(of([A]), now=0.0)
    assert not subject.differs(replace(of([A], retries=9), number=2))
    assert subject.differs(of([A], slow_start=5.0))
    assert subject.differs(of([replace(A, weight=2)]))
    assert subject.differs(of([A, B]))


@settings(max_examples=examples(50))  # slow to draw
@given(CONFIGURATIONS, CONFIGURATIONS)
def test_any_snapshot_can_follow_any_other(first: Snapshot, second: Snapshot):
    """After a change it holds the new servers in their order; applying it again changes nothing."""
    subject = CheckedServers(admins={})
    subject.apply(first, now=0.0)
    before = set(subject.servers)
    applied = subject.apply(second, now=1.0)
    wanted = [(pool.name, server.name) for pool in second.pools for server in pool.servers]
    assert list(subject.servers) == wanted
    assert not subject.differs(second)
    assert applied.stopped <= before
    assert applied.started >= set(wanted) - before
    assert subject.apply(second, now=2.0).started == frozenset()


def test_operator_states_are_kept_for_servers_that_come_back():
    """A server in maint that leaves the configuration and returns is in maint."""
    subject = checked_servers(A, B)
    assert subject.set_admin("pool", "b", AdminState.MAINT, now=1.0) is HealthEvent.MAINT
    assert subject.set_admin("pool", "b", AdminState.MAINT, now=2.0) is None
    subject.apply(of([A]), now=3.0)
    subject.apply(of([A, B]), now=4.0)
    assert subject.find("pool", "b").health.state is ServerState.MAINT
    assert subject.set_admin("pool", "b", AdminState.READY, now=5.0) is HealthEvent.READY
    assert subject.admins == {}


def test_unknown_names_are_answered_with_the_known_ones():
    """An operator who mistypes sees what there is."""
    with pytest.raises(UnknownServerError, match="unknown pool 'pol'; known: none"):
        CheckedServers(admins={}).find("pol", "a")
    subject = checked_servers(A, B)
    with pytest.raises(UnknownServerError, match="unknown pool 'pol'; known: pool"):
        subject.set_admin("pol", "a", AdminState.DRAIN, now=0.0)
    with pytest.raises(UnknownServerError, match="unknown server pool/d; known in pool: a, b"):
        subject.find("pool", "d")


def test_servers_that_take_traffic_are_counted():
    """Down, drained and unchecked servers are not up."""
    subject = checked_servers(A, B, C)
    assert subject.up("pool") == (0, 3)
    conclude(subject, "a", GOOD)
    conclude(subject, "b", GOOD)
    conclude(subject, "c", BAD)
    subject.set_admin("pool", "b", AdminState.DRAIN, now=1.0)
    assert subject.up("pool") == (1, 3)


def test_a_name_has_no_address_until_it_is_resolved():
    """The first address is no reason to begin anew, another one is, the same one is nothing."""
    subject = checked_servers(snapshots.server("a", host="master-0", check=CHECK))
    member, key = subject.find("pool", "a"), ("pool", "a")
    assert member.host == ""
    assert subject.set_host(key, "10.0.0.1", now=1.0)
    conclude(subject, "a", GOOD)
    assert not subject.set_host(key, "10.0.0.1", now=2.0)
    assert member.health.state is ServerState.UP
    assert subject.set_host(key, "10.0.0.2", now=3.0)
    assert (member.host, member.health.state) == ("10.0.0.2", ServerState.CHECKING)


def test_servers_that_share_a_name_have_different_addresses():
    """Each keeps its own as long as the name has it; others take what is free, or have none."""
    servers = [snapshots.server(name, host="scanner", check=CHECK) for name in "abc"]
    other = snapshots.server("other", host="scanner", port=1)
    subject = checked_servers(*servers, other)

    def told(*addresses: str) -> list[str]:
        for key, host in subject.hosts("scanner", addresses).items():
            subject.set_host(key, host, now=1.0)
        return [subject.find("pool", name).host for name in ("a", "b", "c", "other")]

    assert told("10.0.0.1", "10.0.0.2") == ["10.0.0.1", "10.0.0.2", "", "10.0.0.1"]
    assert told("10.0.0.2", "10.0.0.3", "10.0.0.4") == ["10.0.0.3", "10.0.0.2", "10.0.0.4", "10.0.0.2"]
    conclude(subject, "b", GOOD)
    assert told("10.0.0.4") == ["", "", "10.0.0.4", "10.0.0.4"]
    assert subject.find("pool", "b").health.state is ServerState.CHECKING
    assert subject.hosts("nobody", ("10.0.0.4",)) == {}


def test_servers_that_had_one_address_do_not_keep_it_both():
    """The first one keeps it: so a name that was another's before is shared out."""
    servers = [snapshots.server(name, host="scanner", check=CHECK) for name in "ab"]
    subject = checked_servers(*servers)
    for key in subject.servers:
        subject.set_host(key, "10.0.0.1", now=1.0)

    assert list(subject.hosts("scanner", ("10.0.0.1", "10.0.0.2")).values()) == ["10.0.0.1", "10.0.0.2"]


def test_a_record_says_all_there_is():
    """Times become Unix seconds; a server that was never checked has none."""
    subject = checked_servers(A, now=100.0)
    fresh = record(subject.find("pool", "a"), now=101.0, wall=5000.0)
    assert (fresh.checked_at, fresh.verdict, fresh.since) == (0.0, HealthVerdict.UNKNOWN, 4999.0)
    conclude(subject, "a", BAD, now=102.0)
    said = record(subject.find("pool", "a"), now=104.0, wall=5000.0)
    assert (said.pool, said.server, said.host, said.port) == ("pool", "a", "127.0.0.1", 8080)
    assert (said.verdict, said.since, said.checked_at) == (HealthVerdict.DOWN, 4998.0, 4998.0)
    assert (said.result, said.detail, said.failed, said.streak) == (BAD.result, BAD.detail, 1, 1)


def test_records_are_restored_for_servers_at_the_same_address():
    """Another host or port, an unknown server: nothing to restore; a name takes its last address back."""
    named = snapshots.server("named", host="master-0", check=CHECK)
    subject = checked_servers(A, B, C, named)
    subject.set_host(("pool", "named"), "10.0.0.1", now=0.0)
    for name in ("a", "b", "c", "named"):
        conclude(subject, name, BAD)
    records = tuple(record(checked, now=2.0, wall=2.0) for checked in subject.servers.values())
    after = checked_servers(A, replace(B, port=1), replace(C, host="127.0.0.2"), named)
    after.restore((*records, structs.replace(records[0], server="gone")), now=9.0, wall=9.0)
    states = {name: member.health.state.value for (_, name), member in after.servers.items()}
    assert states == {"a": "down", "b": "checking", "c": "checking", "named": "down"}
    assert after.find("pool", "named").host == "10.0.0.1"


def test_an_operators_weight_replaces_the_configured_one():
    """It acts at once, stays over configurations, and comes back with a server that had left."""
    subject = checked_servers(replace(A, weight=10), B)
    key, half = ("pool", "a"), operator_weight("50%")
    assert subject.set_weight(key, half, now=1.0)
    assert not subject.set_weight(key, half, now=2.0)
    assert subject.find(*key).health.weight == 5.0
    subject.apply(of([replace(A, weight=20)]), now=3.0)
    assert subject.find(*key).health.weight == 10.0
    subject.apply(of([B]), now=4.0)
    subject.apply(of([A, B]), now=5.0)
    assert record(subject.find(*key), now=6.0, wall=6.0).operator_weight == half
    assert subject.set_weight(key, None, now=7.0)
    assert (subject.find(*key).health.weight, subject.weights) == (1.0, {})


def test_a_weight_begins_with_what_was_kept():
    """After a restart the server has the weight that an operator gave it before."""
    subject = CheckedServers(admins={}, weights={("pool", "a"): operator_weight("7")})
    subject.apply(of([A, B]), now=0.0)
    assert [checked.health.weight for checked in subject.servers.values()] == [7.0, 1.0]


def test_a_weight_of_nobody_is_refused():
    """As a state of nobody is."""
    subject = checked_servers(A)
    with pytest.raises(UnknownServerError):
        subject.set_weight(("pool", "b"), operator_weight("7"), now=1.0)
    assert subject.weights == {}


class NotGoneThrough(dict[Key, CheckedServer]):
    """Servers that may be looked up, and not gone through one by one."""

    def items(self) -> NoReturn:
        """Fail the test."""
        pytest.fail("all servers were gone through")

    values = items


def test_counts_of_a_pool_cost_what_the_pool_has():
    """Each change of a server is told with them: with all servers that would grow with their square."""
    subject = CheckedServers(admins={})
    pools = [snapshots.pool(name, servers=[A, B]) for name in ("pool", "other")]
    subject.apply(snapshots.snapshot(pools=pools), now=0.0)
    conclude(subject, "a", GOOD)
    subject.servers = NotGoneThrough(subject.servers)
    assert (subject.up("pool"), subject.unchecked("pool")) == ((1, 2), 1)
    assert (subject.up("other"), subject.unchecked("other")) == ((0, 2), 2)
    assert (subject.up("none"), subject.unchecked("none")) == ((0, 0), 0)
    subject.servers = dict(dict.items(subject.servers))
    subject.apply(of([B]), now=2.0)
    assert (subject.up("pool"), subject.up("other")) == ((0, 1), (0, 0))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("check"), st.sampled_from("ab"), st.sampled_from([GOOD, BAD])),
        st.tuples(st.just("admin"), st.sampled_from("ab"), st.sampled_from(AdminState)),
        st.tuples(st.just("host"), st.sampled_from("ab"), st.sampled_from(["10.0.0.1", "10.0.0.2"])),
        st.tuples(
            st.just("apply"), st.just(""), st.sampled_from([[A], [A, B], [B, C], [replace(A, check=None)]])
        ),
    ),
    max_size=12,
)


@given(STEPS)
def test_the_tally_of_a_pool_is_what_counting_gives(steps: list[tuple[str, str, Any]]):
    """Whatever becomes of its servers, who is counted in which state is never out of step."""
    subject = checked_servers(A, B)
    for now, (step, name, value) in enumerate(steps, start=1):
        if step == "apply":
            subject.apply(of(value), now=now)
        elif ("pool", name) not in subject.servers:
            continue
        elif step == "check":
            conclude(subject, name, value, now=now)
        elif step == "admin":
            subject.set_admin("pool", name, value, now=now)
        else:
            subject.set_host(("pool", name), value, now=now)
        states = [each.health.state for each in subject.servers.values()]
        assert subject.up("pool") == (states.count(ServerState.UP), len(states))
        assert subject.unchecked("pool") == states.count(ServerState.CHECKING)


def test_a_change_of_a_server_looks_at_no_other(monkeypatch: pytest.MonkeyPatch):
    """In a pool of 40,000 servers that all go down, each change would look at 40,000."""
    subject = checked_servers(*(snapshots.server(f"s{number}", check=CHECK) for number in range(50)))
    looked: list[ServerHealth] = []

    def state(health: ServerHealth) -> ServerState:
        looked.append(health)
        return state_of(health.verdict, health.admin)

    monkeypatch.setattr(ServerHealth, "state", property(state))
    conclude(subject, "s7", GOOD)
    assert subject.up("pool") == (1, 50)
    assert subject.unchecked("pool") == 49
    assert {id(each) for each in looked} == {id(subject.find("pool", "s7").health)}
