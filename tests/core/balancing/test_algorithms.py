"""Every algorithm gives the shares that the weights say, also while members come, go and change weight."""

from collections import Counter
from ipaddress import ip_address
from random import Random

import pytest
from support.values.snapshots import server

from appliance.core.balancing.algorithms import Balancer, Rendezvous, RoundRobin, balancer, highest, seed
from appliance.core.balancing.pool_member import PoolMember
from appliance.model.snapshot.pools import Balance

pytestmark = pytest.mark.pure

CONNECTIONS = 10_000
WEIGHTS = [(1.0, 1.0, 1.0), (1.0, 2.0, 3.0), (100.0, 50.0, 1.0), (0.25, 0.5, 0.75), (1.0,) * 20, (7.0,)]
COUNTED = [Balance.ROUNDROBIN, Balance.LEASTCONN, Balance.RANDOM]
HASHED = [Balance.SOURCE, Balance.HASH]


def dice() -> Random:
    """Return numbers that are the same in every run."""
    return Random(1)  # noqa: S311  # a test wants them predictable


def members(*weights: float) -> tuple[PoolMember, ...]:
    """Return members of these weights, in a round that begins with the first."""
    return tuple(
        PoolMember(
            pool="pool",
            config=server(f"server-{position}"),
            address=("127.0.0.1", 80),
            limit=0,
            seed=seed(f"server-{position}".encode()),
            turn=position * 1e-6,
            weight=weight,
        )
        for position, weight in enumerate(weights)
    )


def keys(count: int) -> list[bytes]:
    """Return the addresses of that many clients."""
    return [ip_address(0x0A000000 + number * 7).packed for number in range(count)]


def shares(algorithm: Balancer, group: tuple[PoolMember, ...], *, count: int = CONNECTIONS) -> list[float]:
    """Return each member's part of connections that end before the next one begins."""
    taken = Counter(algorithm.choose(group, key).name for key in keys(count))
    return [taken[member.name] / count for member in group]


def ideal(group: tuple[PoolMember, ...]) -> list[float]:
    """Return the parts that the weights ask for."""
    whole = sum(member.weight for member in group)
    return [member.weight / whole for member in group]


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("kind", COUNTED)
def test_short_connections_are_shared_by_weight(kind: Balance, weights: tuple[float, ...]):
    """Each server gets within 2 % of its share of 10,000 short connections."""
    group = members(*weights)
    for got, wanted in zip(shares(balancer(kind, random=dice()), group), ideal(group), strict=True):
        assert got == pytest.approx(wanted, rel=0.02, abs=0.0002)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("kind", HASHED)
def test_clients_are_shared_by_weight(kind: Balance, weights: tuple[float, ...]):
    """Each server gets within two hundredths of all clients of its share of 10,000 different clients."""
    group = members(*weights)
    for got, wanted in zip(shares(balancer(kind, random=dice()), group), ideal(group), strict=True):
        assert got == pytest.approx(wanted, abs=0.02)


@pytest.mark.parametrize("kind", COUNTED)
def test_lasting_connections_are_shared_by_weight(kind: Balance):
    """10,000 connections that stay are shared within 2 % as well."""
    group = members(1.0, 2.0, 5.0)
    algorithm = balancer(kind, random=dice())
    for _ in range(CONNECTIONS):
        algorithm.choose(group, b"").current += 1
    for member, wanted in zip(group, ideal(group), strict=True):
        assert member.current / CONNECTIONS == pytest.approx(wanted, rel=0.02)


@pytest.mark.parametrize("kind", COUNTED)
def test_concurrent_connections_are_shared_by_weight(kind: Balance):
    """With 32 connections open at any time the shares stay within 2 %."""
    group = members(1.0, 1.0, 2.0)
    algorithm = balancer(kind, random=dice())
    held: list[PoolMember] = []
    taken: Counter[str] = Counter()
    for _ in range(CONNECTIONS):
        chosen = algorithm.choose(group, b"")
        chosen.current += 1
        taken[chosen.name] += 1
        held.append(chosen)
        if len(held) > 32:
            held.pop(0).current -= 1
    for member, wanted in zip(group, ideal(group), strict=True):
        assert taken[member.name] / CONNECTIONS == pytest.approx(wanted, rel=0.02)


def test_turns_are_smooth():
    """A heavy server's turns lie between those of the light ones, not in a row."""
    group = members(2.0, 1.0, 1.0)
    turns = RoundRobin()
    order = [turns.choose(group, b"").name[-1] for _ in range(8)]
    assert "000" not in "".join(order)
    assert Counter(order) == {"0": 4, "1": 2, "2": 2}


def test_member_that_was_away_gets_its_share_and_no_more():
    """A server that comes back takes its turn, and not what it has missed."""
    group = members(1.0, 1.0)
    turns = RoundRobin()
    for _ in range(1000):
        turns.choose(group[:1], b"")
    assert shares(turns, group, count=100) == pytest.approx([0.5, 0.5], abs=0.02)


def test_growing_weight_counts_at_once():
    """A server in its slow start does not wait out the long step of its first weight."""
    group = members(1.0, 0.01)
    turns = RoundRobin()
    for _ in range(50):
        turns.choose(group, b"")
    turns.reweigh(group[1], 1.0)
    assert shares(turns, group, count=100) == pytest.approx([0.5, 0.5], abs=0.03)


def test_weight_from_nothing_is_taken():
    """A weight that was 0 is no divisor; the next choice uses the new one."""
    group = members(1.0, 0.0)
    turns = RoundRobin()
    turns.reweigh(group[1], 1.0)
    turns.members_changed()
    assert shares(turns, group, count=100) == pytest.approx([0.5, 0.5], abs=0.02)


def test_least_connections_prefers_the_idle_one():
    """The server with the fewest connections for its weight takes the next."""
    group = members(1.0, 4.0)
    group[0].current, group[1].current = 1, 3
    assert balancer(Balance.LEASTCONN, random=dice()).choose(group, b"") is group[1]


def test_random_prefers_the_less_loaded_of_two():
    """Of two drawn servers the one with fewer connections for its weight takes the connection."""
    group = members(1.0, 1.0)
    group[0].current = 5
    assert balancer(Balance.RANDOM, random=dice()).choose(group, b"") is group[1]


def test_first_takes_the_first_whatever_the_weights():
    """The first server takes every connection, however heavy the others are; a new weight changes nothing."""
    group = members(1.0, 256.0, 2.0)
    algorithm = balancer(Balance.FIRST, random=dice())
    algorithm.reweigh(group[0], 0.25)
    assert group[0].weight == 0.25
    assert shares(algorithm, group, count=100) == [1.0, 0.0, 0.0]
    assert shares(algorithm, group[1:], count=100) == [1.0, 0.0]
    assert not algorithm.sticky


def test_leaving_member_moves_only_its_own_clients():
    """Clients of the other servers stay where they were."""
    group = members(1.0, 2.0, 1.0, 1.0)
    rendezvous = Rendezvous()
    before = {key: rendezvous.choose(group, key) for key in keys(2000)}
    rest = group[1:]
    after = {key: rendezvous.choose(rest, key) for key in keys(2000)}
    assert all(after[key] is chosen for key, chosen in before.items() if chosen is not group[0])


def test_growing_weight_only_attracts_clients():
    """A server whose weight grows takes clients over; none moves between the others."""
    group = members(1.0, 1.0, 0.2)
    rendezvous = Rendezvous()
    before = {key: rendezvous.choose(group, key) for key in keys(2000)}
    rendezvous.reweigh(group[2], 1.0)
    after = {key: rendezvous.choose(group, key) for key in keys(2000)}
    assert all(after[key] in (chosen, group[2]) for key, chosen in before.items())


def test_same_client_same_server_everywhere():
    """The choice depends on names and weights alone, not on the process, the order or the past."""
    group, others = members(1.0, 2.0, 1.0), members(1.0, 2.0, 1.0)
    one, other = Rendezvous(), Rendezvous()
    for key in keys(500):
        assert one.choose(group, key).name == other.choose(others[::-1], key).name
    assert "".join(highest(group, key).name[-1] for key in keys(12)) == "211021110021"


def test_cache_of_clients_is_bounded():
    """More clients than the cache holds are still sent to the same servers."""
    group = members(1.0, 1.0)
    rendezvous = Rendezvous()
    first = [rendezvous.choose(group, key) for key in keys(9000)]
    assert [rendezvous.choose(group, key) for key in keys(9000)] == first


def test_hundred_turns_of_several_workers_stay_even():
    """Workers that begin with different servers give even shares from the first connections on."""
    taken: Counter[str] = Counter()
    for worker in range(3):
        group = members(1.0, 1.0, 1.0)
        for position, member in enumerate(group):
            member.turn = (position - worker) % 3 * 1e-6
        taken[RoundRobin().choose(group, b"").name] += 1
    assert set(taken.values()) == {1}
