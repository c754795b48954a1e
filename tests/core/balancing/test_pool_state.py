"""A pool's decisions: who takes a connection, who waits, who is refused, and whose turn comes next."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values.snapshots import pool, server

from appliance.core.balancing.algorithms import seed
from appliance.core.balancing.pool_member import PoolMember
from appliance.core.balancing.pool_state import WAIT, LostMembers, PoolState
from appliance.model.check_results import CheckResult
from appliance.model.end_reasons import EndReason
from appliance.model.server_states import AdminState, HealthVerdict
from appliance.model.snapshot.pools import Balance, OnDown, OnUp, Pool
from appliance.wire.boards.health_board import ServerHealthRecord

pytestmark = pytest.mark.pure

NAMES = ("a", "b", "c")
NOTHING = LostMembers(down=(), closing=())
COUNTED = [Balance.ROUNDROBIN, Balance.LEASTCONN, Balance.RANDOM]


def dice() -> Random:
    """Return numbers that are the same in every run."""
    return Random(1)  # noqa: S311  # a test wants them predictable


def record(name: str, **changes: object) -> ServerHealthRecord:
    """Return what the prober says of a server: up with weight 1, unless told otherwise."""
    values: dict[str, object] = {
        "pool": "pool",
        "server": name,
        "verdict": HealthVerdict.UP,
        "admin": AdminState.READY,
        "weight": 1.0,
        "since": 0.0,
        "checked_at": 0.0,
        "duration": 0.0,
        "result": CheckResult.L4OK,
        "status": 0,
        "streak": 1,
        "failed": 0,
        "host": "127.0.0.1",
        "port": 80,
        "detail": "",
        "unreachable": False,
    }
    return ServerHealthRecord(**{**values, **changes})  # type: ignore[arg-type]  # the fields of a record


def health(*records: ServerHealthRecord) -> dict[tuple[str, str], ServerHealthRecord]:
    """Return a board's records as a pool looks them up."""
    return {(each.pool, each.server): each for each in records}


def config(**changes: object) -> Pool:
    """Return a pool of the servers a, b and c."""
    return pool("pool", **{"servers": [server(name) for name in NAMES], **changes})


def state(given: Pool, *records: ServerHealthRecord, workers: int = 1, index: int = 0) -> PoolState:
    """Return the pool with its board seen; without records all servers are up."""
    made = PoolState(given, workers=workers, index=index, random=dice())
    made.observe(health(*(records or [record(each.name) for each in given.servers])))
    return made


def place(made: PoolState, key: bytes = b"", *avoid: PoolMember) -> PoolMember:
    """Return the member that a connection was given."""
    chosen = made.place(key, avoid=avoid)
    assert isinstance(chosen, PoolMember)
    return chosen


def member(made: PoolState, name: str) -> PoolMember:
    """Return a member by name."""
    return next(each for each in made.members if each.name == name)


def names(made: PoolState) -> set[str]:
    """Return who is eligible."""
    return {each.name for each in made.eligible}


DOWN_TO_BACKUPS = (record("a", verdict=HealthVerdict.DOWN), record("b"), record("c"))
"""Of the server a and the backups b and c only the backups are up."""


def test_connection_counts_where_it_was_placed():
    """A placed connection is current and total of its server; its end takes it off current alone."""
    made = state(config())
    chosen = place(made)
    assert (chosen.current, chosen.total, chosen.label) == (1, 1, f"pool/{chosen.name}")
    assert made.release(chosen) is None
    assert (chosen.current, chosen.total) == (0, 1)


def test_workers_begin_with_different_servers():
    """The first connections of three workers go to three servers."""
    assert {place(state(config(), workers=3, index=index)).name for index in range(3)} == set(NAMES)


def test_unknown_servers_make_connections_wait():
    """Before the prober knows a server nobody is refused: the connection waits."""
    made = PoolState(config(), workers=1, index=0, random=dice())
    assert made.place(b"") is WAIT
    made.observe(health(record("a", verdict=HealthVerdict.UNKNOWN)))
    assert made.place(b"") is WAIT


def test_no_server_is_a_refusal():
    """With every server down the connection is refused."""
    made = state(config(), *(record(name, verdict=HealthVerdict.DOWN) for name in NAMES))
    assert made.place(b"") is EndReason.NO_SERVER


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": HealthVerdict.DOWN},
        {"admin": AdminState.DRAIN},
        {"admin": AdminState.MAINT},
        {"weight": 0.0},
    ],
)
def test_server_out_of_service_gets_nothing(change: dict[str, object]):
    """Down, drain, maint and weight 0 each keep new connections away."""
    made = state(config(), record("a", **change), record("b"), record("c"))
    assert names(made) == {"b", "c"}


def test_backup_waits_for_the_last_primary():
    """A backup server is used only where no primary is."""
    given = config(servers=[server("a"), server("b", backup=True)])
    assert names(state(given)) == {"a"}
    assert names(state(given, record("a", verdict=HealthVerdict.DOWN), record("b"))) == {"b"}


@pytest.mark.parametrize("balance", list(Balance))
def test_of_several_backups_all_clients_have_one(balance: Balance):
    """The first that is up has them all, by any algorithm; with it down the next one, and back again."""
    servers = [server("a"), server("b", backup=True), server("c", backup=True)]
    made = state(config(servers=servers, balance=balance), *DOWN_TO_BACKUPS)
    keys = [b"client %d" % number for number in range(40)]
    assert {place(made, key).name for key in keys} == {"b"}
    made.observe(health(DOWN_TO_BACKUPS[0], record("b", verdict=HealthVerdict.DOWN), record("c")))
    assert {place(made, key).name for key in keys} == {"c"}
    made.observe(health(*DOWN_TO_BACKUPS))
    assert {place(made, key).name for key in keys} == {"b"}
    assert member(made, "c").current == len(keys), "sessions stay where they are"


@pytest.mark.parametrize("balance", [Balance.SOURCE, Balance.HASH])
def test_clients_stay_at_their_backup(balance: Balance):
    """With all backups a client has one by its hash, keeps it, and only those of one that leaves move."""
    servers = [server("a"), *(server(name, backup=True) for name in "bcd")]
    backups = [record(name) for name in "bcd"]
    made = state(config(servers=servers, balance=balance, all_backups=True), DOWN_TO_BACKUPS[0], *backups)
    keys = [b"client %d" % number for number in range(60)]
    first = {key: place(made, key).name for key in keys}
    assert set(first.values()) == {"b", "c", "d"}
    made.observe(health(record("a"), *backups))
    assert {place(made, key).name for key in keys} == {"a"}
    made.observe(health(DOWN_TO_BACKUPS[0], *backups))
    assert {key: place(made, key).name for key in keys} == first
    made.observe(health(DOWN_TO_BACKUPS[0], *backups[1:], record("b", verdict=HealthVerdict.DOWN)))
    moved = {key: place(made, key).name for key in keys}
    assert {key for key in keys if moved[key] != first[key]} == {key for key in keys if first[key] == "b"}


def test_all_backups_can_be_said_while_it_runs():
    """A reload that says so, or not any more, holds for the next connection."""
    servers = [server("a"), server("b", backup=True), server("c", backup=True)]
    made = state(config(servers=servers), *DOWN_TO_BACKUPS)
    assert names(made) == {"b"}
    made.apply(config(servers=servers, all_backups=True))
    assert names(made) == {"b", "c"}
    made.apply(config(servers=servers))
    assert names(made) == {"b"}


def test_a_backup_that_serves_goes_on_while_a_new_server_is_checked():
    """A server that a reload adds stops nobody; who has seen no server yet waits for its first check."""
    servers = [server("a"), server("b", backup=True), server("c", backup=True)]
    made = state(config(servers=servers), *DOWN_TO_BACKUPS)
    more = config(servers=[*servers, server("d")])
    made.apply(more)
    assert names(made) == {"b"}
    anew = PoolState(more, workers=1, index=0, random=dice())
    anew.observe(health(*DOWN_TO_BACKUPS))
    assert anew.place(b"") is WAIT
    made.observe(health(*DOWN_TO_BACKUPS, record("d")))
    assert names(made) == {"d"}


def test_a_full_backup_is_waited_for():
    """Its connections queue: the next backup is for when it is down, not for when it is busy."""
    servers = [server("a"), server("b", backup=True, max_connections=1), server("c", backup=True)]
    made = state(config(servers=servers), *DOWN_TO_BACKUPS)
    first = place(made)
    assert made.place(b"") is WAIT
    assert made.release(first) is None
    assert place(made, b"", first) is first, "a further try has no other"


def test_panic_uses_all_but_the_operators_exceptions():
    """With fewer servers up than the threshold, all are used that the operator has not taken out."""
    servers = [server(name) for name in "abcd"]
    down = [record(name, verdict=HealthVerdict.DOWN, weight=0.0) for name in "bc"]
    rest = [record("a"), record("d", admin=AdminState.MAINT)]
    made = state(config(servers=servers, panic=0.5), *rest, *down)
    assert names(made) == {"a", "b", "c"}
    assert {place(made).name for _ in range(3)} == {"a", "b", "c"}
    assert names(state(config(servers=servers, panic=0.3), *rest, *down)) == {"a"}


def test_panic_uses_a_down_servers_own_weight():
    """A server that is down with a weight on the board keeps it in a panic."""
    made = state(config(panic=1.0), record("a"), *(record(name, verdict=HealthVerdict.DOWN) for name in "bc"))
    assert [each.weight for each in made.members] == [1.0, 1.0, 1.0]
    assert names(made) == set(NAMES)


def test_panic_obeys_the_operator_where_a_server_is_down_too():
    """A server that is drained is not used in a panic when it goes down, and used again when it is ready."""
    given = config(panic=0.5)
    down = [record(name, verdict=HealthVerdict.DOWN) for name in "bc"]
    made = state(given, record("a", verdict=HealthVerdict.DOWN, admin=AdminState.DRAIN), *down)
    assert names(made) == {"b", "c"}
    made.observe(health(record("a", verdict=HealthVerdict.DOWN), *down))
    assert names(made) == set(NAMES)


def test_panic_waits_for_the_first_checks():
    """Before a check has ended connections wait, and so they do while none is up and others are checked."""
    made = PoolState(config(panic=0.9), workers=1, index=0, random=dice())
    assert made.place(b"") is WAIT
    made.observe(health(record("a", verdict=HealthVerdict.DOWN), record("b", verdict=HealthVerdict.UNKNOWN)))
    assert made.place(b"") is WAIT
    made.observe(health(record("a", verdict=HealthVerdict.DOWN), record("b")))
    assert names(made) == {"a", "b"}


def test_panic_is_not_up():
    """A pool has a server up only where one takes connections whose checks say so, backups included."""
    down = [record(name, verdict=HealthVerdict.DOWN) for name in NAMES]
    made = state(config(panic=1.0), *down)
    assert names(made) == set(NAMES)
    assert not made.has_up
    made.observe(health(record("a"), *down[1:]))
    assert made.has_up
    made.observe(health(record("a", admin=AdminState.DRAIN), *down[1:]))
    assert not made.has_up
    spare = config(servers=[server("a"), server("b", backup=True)])
    assert state(spare, record("a", verdict=HealthVerdict.DOWN), record("b")).has_up
    assert not state(
        spare, record("a", verdict=HealthVerdict.DOWN), record("b", admin=AdminState.MAINT)
    ).has_up


def test_newly_down_servers_are_reported_once():
    """Who waits for a server can leave in the moment it goes down or into maintenance."""
    made = state(config())
    down = health(record("a", verdict=HealthVerdict.DOWN), record("b", admin=AdminState.MAINT), record("c"))
    assert [each.name for each in made.observe(down).down] == ["a", "b"]
    assert made.observe(down) == NOTHING
    assert made.observe(health(record("a"), record("b", admin=AdminState.DRAIN), record("c"))) == NOTHING


@pytest.mark.parametrize(
    ("on_down", "closing"),
    [(OnDown.KEEP, ""), (OnDown.CLOSE_SESSIONS, "abc"), (OnDown.AUTO, "b")],
)
def test_whose_sessions_end_depends_on_on_down(on_down: OnDown, closing: str):
    """Auto is by the kind of failure: those of a server that nothing answers for, and of no other."""
    made = state(config(on_down=on_down))
    bad = record("a", verdict=HealthVerdict.DOWN)
    silent = record("b", verdict=HealthVerdict.DOWN, unreachable=True)
    losses = made.observe(health(bad, silent, record("c", admin=AdminState.MAINT)))
    assert [each.name for each in losses.down] == ["a", "b", "c"]
    assert [each.name for each in losses.closing] == [*closing]


def test_a_server_that_falls_silent_while_it_is_down_loses_its_sessions():
    """First it answered badly and kept them; each time that it falls silent they end, once."""
    made = state(config(on_down=OnDown.AUTO))
    bad = record("a", verdict=HealthVerdict.DOWN)
    silent = record("a", verdict=HealthVerdict.DOWN, unreachable=True)
    seen = [[each.name for each in made.observe(health(now)).closing] for now in (bad, silent, silent, bad)]
    assert seen == [[], ["a"], [], []]
    assert [each.name for each in made.observe(health(silent)).closing] == ["a"]
    assert made.observe({}).closing == ()


DOWN_A = record("a", verdict=HealthVerdict.DOWN)


@pytest.mark.parametrize(
    ("before", "after", "relieved"),
    [
        (DOWN_A, record("a"), "bc"),
        (DOWN_A, record("a", weight=0.1), "bc"),
        (record("a", admin=AdminState.MAINT), record("a"), "bc"),
        (None, record("a"), "bc"),
        (DOWN_A, record("a", weight=0.0), ""),
        (DOWN_A, record("a", admin=AdminState.DRAIN), ""),
        (record("a", admin=AdminState.DRAIN), record("a"), ""),
        (record("a"), record("a"), ""),
        (record("a"), DOWN_A, ""),
    ],
)
def test_whose_sessions_end_when_a_server_comes_up(
    before: ServerHealthRecord | None, after: ServerHealthRecord, relieved: str
):
    """With on_up those of all backups, as in HAProxy: once, and only for a server that has a weight."""
    servers = (server("a"), server("b", backup=True), server("c", backup=True))
    backups = (record("b"), record("c"))
    seen = []
    for on_up in OnUp:
        made = state(config(servers=servers, on_up=on_up), *([before] if before else []), *backups)
        seen.append("".join(each.name for each in made.observe(health(after, *backups)).relieved))
        assert made.observe(health(after, *backups)).relieved == ()
    assert seen == ["", relieved]


def test_a_backup_that_comes_up_ends_no_session():
    """Neither its own nor another backup's; one that is no longer configured is a backup still."""
    servers = (server("a"), server("b", backup=True), server("c", backup=True))
    down = (DOWN_A, record("b"), record("c", verdict=HealthVerdict.DOWN))
    made = state(config(servers=servers, on_up=OnUp.CLOSE_BACKUP_SESSIONS), *down)
    made.place(b"")
    assert made.observe(health(DOWN_A, record("b"), record("c"))).relieved == ()
    made.apply(config(servers=servers[:1], on_up=OnUp.CLOSE_BACKUP_SESSIONS))
    assert [each.name for each in made.observe(health(record("a"))).relieved] == ["b"]


def test_server_names_are_resolved_by_the_prober():
    """A literal address is used as it is; a name needs the prober's answer."""
    given = config(servers=[server("a", host="masters.example.com", port=6443), server("b", host="::1")])
    made = state(given, record("a", host=""), record("b", host="9.9.9.9"))
    assert [each.address for each in made.members] == [None, ("::1", 8080)]
    assert names(made) == {"b"}
    made.observe(health(record("a", host="10.0.0.9"), record("b")))
    assert member(made, "a").address == ("10.0.0.9", 6443)
    made.observe({})
    assert member(made, "a").address is None


def test_failed_servers_are_avoided_while_there_is_another():
    """A retry goes elsewhere, and to the same server only where it is the last."""
    made = state(config())
    first = place(made)
    second = place(made, b"", first)
    third = place(made, b"", first, second)
    assert {first.name, second.name, third.name} == set(NAMES)
    assert place(made, b"", first, second, third) in (first, second, third)
    assert made.has_others([first, second])
    assert not made.has_others([first, second, third])


def test_full_servers_are_passed_over_and_then_waited_for():
    """At max_connections a server gets nothing more; when all are full the connection waits for its turn."""
    made = state(config(servers=[server("a", max_connections=1), server("b", max_connections=2)]))
    taken = [place(made) for _ in range(3)]
    assert Counter(each.name for each in taken) == {"a": 1, "b": 2}
    assert made.place(b"") is WAIT
    assert made.enqueue("first", b"") is None
    assert made.enqueue("second", b"") is None
    assert (made.queued, [each.queued for each in made.members]) == (2, [1, 1])
    assert made.release(taken[0]) == "first"
    assert (made.queued, sum(each.queued for each in made.members)) == (1, 1)


def test_first_fills_one_server_after_another():
    """Each server is filled up to its limit in the file's order, and so are places that become free."""
    servers = [server(name, max_connections=2) for name in NAMES]
    made = state(config(balance=Balance.FIRST, servers=servers), index=1)
    taken = [place(made) for _ in range(6)]
    assert "".join(each.name for each in taken) == "aabbcc"
    assert made.place(b"") is WAIT
    made.release(taken[4]), made.release(taken[0]), made.release(taken[2])
    assert "".join(place(made).name for _ in range(3)) == "abc"
    made.observe(health(record("a", verdict=HealthVerdict.DOWN), *map(record, NAMES[1:])))
    made.release(taken[3])
    assert place(made).name == "b"


def test_limits_are_this_workers_share():
    """A server's limit of 3 is 2 for one of two workers and 1 for the other, queue bounds likewise."""
    given = config(servers=[server("a", max_connections=3)], max_queue=3)
    one, other = (state(given, workers=2, index=index) for index in range(2))
    assert [each.members[0].limit for each in (one, other)] == [2, 1]
    assert [one.enqueue(name, b"") for name in "xyz"] == [None, None, EndReason.QUEUE_FULL]
    assert [other.enqueue(name, b"") for name in "xy"] == [None, EndReason.QUEUE_FULL]


def test_whoever_leaves_the_queue_frees_a_place():
    """A client that is gone is passed over; leaving twice is harmless."""
    made = state(config(servers=[server("a", max_connections=1)], max_queue=2))
    taken = place(made)
    made.enqueue("gone", b"")
    made.enqueue("next", b"")
    made.dequeue("gone")
    made.dequeue("gone")
    assert made.members[0].queued == 1
    assert made.enqueue("last", b"") is None
    assert made.release(taken) == "next"


def test_who_waited_in_another_worker_waits_here_too():
    """A queue that is full turns new ones away, and not those that were let in."""
    made = state(config(servers=[server("a", max_connections=1)], max_queue=1))
    taken = place(made)
    made.enqueue("here", b"")
    assert made.enqueue("new", b"") is EndReason.QUEUE_FULL
    made.wait("elsewhere", b"")
    assert made.queued == 2
    assert made.release(taken) == "here"


def test_connection_that_goes_to_another_worker_frees_no_place():
    """Its server is as busy as before; one that was removed is forgotten with the last one all the same."""
    made = state(config(servers=[server("a", max_connections=1)]))
    made.depart(place(made))
    assert made.members[0].current == 0
    taken = place(made)
    made.enqueue("next", b"")
    made.depart(taken)
    assert made.queued == 1
    gone = made.join(server("gone"))
    made.join(server("gone"))
    made.depart(gone)
    assert gone in made.counted
    made.depart(gone)
    assert gone not in made.counted


def test_sticky_connection_waits_for_its_own_server():
    """With balance source a full server's clients wait for it, and nobody else gets their place."""
    servers = [server("a", max_connections=1), server("b", max_connections=1)]
    made = state(config(balance=Balance.SOURCE, servers=servers))
    keys = [bytes([number]) for number in range(100)]
    mine = next(key for key in keys if _owner(servers, key) == "a")
    other = next(key for key in keys if _owner(servers, key) == "b")
    at_a, at_b = place(made, mine), place(made, other)
    assert made.place(mine) is WAIT
    made.enqueue("waiter", mine)
    assert member(made, "a").queued == 1
    assert made.release(at_b) is None
    assert made.release(at_a) == "waiter"


def test_sticky_connection_waits_for_another_than_its_server_that_failed():
    """A client whose server refuses waits for the one that a retry would take, and is let in there."""
    servers = [server("a", max_connections=1), server("b", max_connections=1)]
    made = state(config(balance=Balance.SOURCE, servers=servers))
    keys = [bytes([number]) for number in range(100)]
    mine = next(key for key in keys if _owner(servers, key) == "a")
    other = next(key for key in keys if _owner(servers, key) == "b")
    at_b, failed = place(made, other), place(made, mine)
    made.release(failed)
    assert made.place(mine, avoid=[failed]) is WAIT
    made.enqueue("waiter", mine, avoid=[failed])
    assert [each.queued for each in made.members] == [0, 1]
    assert made.release(at_b) == "waiter"
    assert place(made, mine, failed).name == "b"


def test_free_place_goes_to_the_first_who_would_have_it():
    """Who has failed at a server lets others pass there, and waits for another one, if there is one."""
    made = state(config(servers=[server("a", max_connections=1), server("b", max_connections=1)]))
    first, second = place(made), place(made)
    made.enqueue("failed at the first", b"", avoid=[first])
    assert made.release(first) is None
    made.enqueue("failed at both", b"", avoid=[first, second])
    assert place(made) is first
    assert made.release(first) == "failed at both"
    assert made.release(second) == "failed at the first"


def _owner(servers: list[object], key: bytes) -> str:
    return place(state(config(balance=Balance.SOURCE, servers=servers)), key).name


def test_place_at_a_server_out_of_service_is_given_to_nobody():
    """A connection that ends at a draining server lets no waiter in there."""
    made = state(config(servers=[server("a", max_connections=1)]))
    taken = place(made)
    made.enqueue("waiter", b"")
    made.observe(health(record("a", admin=AdminState.DRAIN)))
    assert made.release(taken) is None


def test_waiters_try_again_when_servers_change():
    """Once a server is up all who waited for one may try; while all are being checked nobody need."""
    made = PoolState(config(), workers=1, index=0, random=dice())
    made.enqueue("first", b"")
    made.enqueue("second", b"")
    assert made.dequeue_all() == []
    made.observe(health(record("a")))
    assert made.dequeue_all() == ["first", "second"]
    assert made.queued == 0


def test_other_configuration_keeps_what_is_there():
    """Servers that stay keep their counters; new ones are waited for, old ones forgotten."""
    made = state(config())
    place(made), place(made), place(made)
    made.apply(config(balance=Balance.LEASTCONN, servers=[server("b", max_connections=1), server("d")]))
    assert [each.name for each in made.members] == ["b", "d"]
    assert (member(made, "b").total, member(made, "b").limit) == (1, 1)
    assert names(made) == {"b"}
    made.observe(health(record("b"), record("d")))
    assert place(made).name == "d"


@pytest.mark.parametrize("after", COUNTED)
@pytest.mark.parametrize("before", Balance)
def test_other_algorithm_gives_a_new_server_its_share(before: Balance, after: Balance):
    """Whichever algorithm follows which, the servers that stay and one that is added get even shares."""
    made = state(config(balance=before, servers=[server("a"), server("b")]))
    for number in range(3000):
        made.release(place(made, number.to_bytes(2)))
    made.apply(config(balance=after))
    made.observe(health(*map(record, NAMES)))
    taken: Counter[str] = Counter()
    for _ in range(3000):
        chosen = place(made)
        taken[chosen.name] += 1
        made.release(chosen)
    assert all(900 < taken[name] < 1100 for name in NAMES)


def test_removed_server_is_known_while_it_has_sessions():
    """A server that was removed is counted until its last session ends, and forgotten then."""
    made = state(config())
    taken = [place(made) for _ in range(6)]
    made.apply(config(servers=[server("a")]))
    assert [(each.name, each.current) for each in made.counted] == [("a", 2), ("b", 2), ("c", 2)]
    for each in taken:
        if each.name == "b":
            made.release(each)
    assert [each.name for each in made.counted] == ["a", "c"]
    made.apply(config(servers=[server("a"), server("b")]))
    assert [(each.name, each.total) for each in made.counted] == [("a", 2), ("b", 0), ("c", 2)]


def test_connection_of_another_worker_joins_its_server():
    """It is counted at its server, beyond a limit too, and is no new one."""
    made = state(config(servers=[server("a", max_connections=1)]))
    joined = [made.join(server("a")) for _ in range(2)]
    assert joined == [member(made, "a")] * 2
    assert (joined[0].current, joined[0].total) == (2, 0)


def test_connection_of_another_worker_joins_a_server_that_was_removed():
    """The server is counted until its last connection ends, also where the pool has no server any more."""
    made = state(config(servers=[]))
    joined = made.join(server("gone"))
    assert made.join(server("gone")) is joined
    assert [(each.name, each.current) for each in made.counted] == [("gone", 2)]
    assert joined.seed == seed(b"gone")
    made.release(joined)
    made.release(joined)
    assert made.counted == ()


def test_server_that_is_put_back_finds_its_sessions():
    """Its sessions count against its limit and end when it goes down; address and limit are the new ones."""
    made = state(config())
    taken = next(each for each in iter(lambda: place(made), None) if each.name == "b")
    made.apply(config(servers=[server("a")]))
    made.apply(config(servers=[server("a"), server("b", host="127.0.0.9", max_connections=1)]))
    assert member(made, "b") is taken
    assert (taken.full, taken.address) == (True, ("127.0.0.9", 8080))
    assert made.observe(health(record("a"), record("b", verdict=HealthVerdict.DOWN))).down == (taken,)


def test_server_that_is_put_back_down_is_reported_at_once():
    """Where the prober has said so already, the change itself tells whose sessions are to end."""
    made = state(config(servers=[server("a"), server("b")]))
    place(made), place(made)
    taken = member(made, "b")
    made.apply(config(servers=[server("a")]))
    made.observe(health(record("a"), record("b", verdict=HealthVerdict.DOWN)))
    assert made.apply(config(servers=[server("a"), server("b")])).down == (taken,)


@pytest.mark.parametrize("after", COUNTED)
def test_server_that_is_put_back_gets_its_share(after: Balance):
    """However many turns it has had, and whichever algorithm follows, it gets as much as the others."""
    made = state(config())
    held = [place(made) for _ in range(3000)]
    made.apply(config(servers=[server("a"), server("b")]))
    for each in held[:-3]:
        made.release(each)
    made.apply(config(balance=after, servers=[server("a"), server("b")]))
    made.apply(config(balance=after))
    made.observe(health(*map(record, NAMES)))
    taken: Counter[str] = Counter()
    for _ in range(3000):
        chosen = place(made)
        taken[chosen.name] += 1
        made.release(chosen)
    assert all(900 < taken[name] < 1100 for name in NAMES)


def test_ended_connection_of_a_forgotten_server_is_harmless():
    """A session may outlive its server's place in the configuration."""
    made = state(config())
    taken = place(made)
    made.apply(config(servers=[server("z")]))
    assert made.release(taken) is None


def test_avoided_sticky_server_moves_to_the_next_best():
    """A client whose server refuses is sent to the same other server each time."""
    made = state(config(balance=Balance.SOURCE))
    first = place(made, b"client")
    assert {place(made, b"client", first).name for _ in range(5)} == {place(made, b"client", first).name}
    assert place(made, b"client") is first


@given(
    steps=st.lists(st.sampled_from(["arrive", "end", "down", "up", "leave"]), max_size=60),
    limit=st.integers(0, 2),
    bound=st.integers(0, 3),
    balance=st.sampled_from(Balance),
)
def test_limits_hold_whatever_happens(  # noqa: C901  # one step of each kind
    steps: list[str], limit: int, bound: int, balance: Balance
):
    """No server ever has more than its limit, no queue more than its bound, and every count returns to 0."""
    made = state(
        config(
            balance=balance, max_queue=bound, servers=[server(name, max_connections=limit) for name in NAMES]
        )
    )
    held: list[PoolMember] = []

    def settle(waiter: str) -> None:
        decision = made.place(waiter.encode())
        if isinstance(decision, PoolMember):
            held.append(decision)
        elif decision is WAIT:
            made.enqueue(waiter, waiter.encode())

    for number, step in enumerate(steps):
        if step == "arrive":
            settle(f"waiter-{number}")
        elif step == "end" and held:
            waiter = made.release(held.pop(0))
            if waiter is not None:
                settle(waiter)
        elif step == "leave":
            made.dequeue("waiter-0")
        elif step in {"up", "down"}:
            verdict = HealthVerdict.UP if step == "up" else HealthVerdict.DOWN
            made.observe(health(record("a", verdict=verdict), record("b"), record("c")))
            for waiter in made.dequeue_all():
                settle(waiter)
        assert all(each.current <= limit for each in made.members if limit)
        assert not bound or made.queued <= bound
        assert sum(each.queued for each in made.members) == made.queued
    while held:
        made.release(held.pop())
    assert [each.current for each in made.members] == [0, 0, 0]
