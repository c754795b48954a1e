"""Slots: each server has its weight's part, in turn or by hash, and hashed ones hardly move."""

from collections import Counter
from random import Random

import pytest
from support.values.snapshots import pool, server

from appliance.core.balancing.pool_member import PoolMember
from appliance.core.balancing.pool_state import PoolState
from appliance.core.forwarding.plan import SLOTS, slots
from appliance.model.snapshot.pools import Balance

pytestmark = pytest.mark.pure


def members(**weights: float) -> list[PoolMember]:
    """Return members with these weights."""
    config = pool(servers=[server(name, weight=1) for name in weights])
    state = PoolState(config, workers=1, index=0, random=Random(1))  # noqa: S311  # unused
    for each in state.members:
        each.weight = weights[each.name]
    return list(state.members)


def test_nobody_has_slots_where_nobody_is():
    """Without a server there are no slots at all."""
    assert slots([], Balance.ROUNDROBIN) == ()


def test_slots_in_turn_are_a_weighted_round_robin():
    """One after the other gives everybody his turns, evenly spread."""
    found = slots(members(a=2.0, b=1.0, c=1.0), Balance.ROUNDROBIN)

    assert len(found) == SLOTS
    assert Counter(found[:8]) == {"a": 4, "b": 2, "c": 2}
    assert abs(Counter(found)["a"] - SLOTS / 2) <= 1


def test_a_slow_start_is_a_matter_of_slots():
    """A server with a hundredth of its weight has a hundredth of the slots."""
    found = Counter(slots(members(a=1.0, b=0.01), Balance.RANDOM))

    assert 8 <= found["b"] <= 12


@pytest.mark.parametrize("balance", [Balance.SOURCE, Balance.HASH])
def test_a_server_that_leaves_moves_only_its_own_slots(balance: Balance):
    """All others stay where they are, and its slots are shared by the others."""
    before = slots(members(a=1.0, b=1.0, c=1.0), balance)
    after = slots(members(a=1.0, c=1.0), balance)

    moved = [old for old, new in zip(before, after, strict=True) if old != new]
    assert set(moved) == {"b"}
    assert set(after) == {"a", "c"}
    assert min(Counter(before).values()) > SLOTS / 4
