"""The rules about connections that are, or are about to be, another node's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.migration import ruleset
from appliance.wire.nftables.nftables_commands import Family

pytestmark = pytest.mark.pure

_ENDS = ("192.0.2.9", 40000, "192.0.2.100", 6443)


def test_the_table_goes_with_the_process_and_drops_both_directions():
    """The kernel removes an owned table with its process: nothing stays held back."""
    made = ruleset.make(Family.IPV4).splitlines()
    assert made[0] == "add table ip lb_migrate { flags owner; }"
    assert made[-2:] == [
        "add rule ip lb_migrate in ip saddr . tcp sport . ip daddr . tcp dport @held drop",
        "add rule ip lb_migrate out ip daddr . tcp dport . ip saddr . tcp sport @held drop",
    ]


def test_a_hold_ends_by_itself():
    """Each element has a time-out."""
    assert ruleset.hold(Family.IPV4, [_ENDS], seconds=10) == (
        "add element ip lb_migrate held { 192.0.2.9 . 40000 . 192.0.2.100 . 6443 timeout 10s }"
    )


def test_letting_go_of_what_has_expired_is_no_error():
    """It is added before it is deleted, in one transaction."""
    added, deleted = ruleset.let_go(Family.IPV6, [("fd00::9", 1, "fd00::100", 2)]).splitlines()
    assert added == "add element ip6 lb_migrate held { fd00::9 . 1 . fd00::100 . 2 }"
    assert deleted == added.replace("add", "delete", 1)


@pytest.mark.parametrize(
    ("family", "kind"), [(Family.IPV4, "icmp type prot-"), (Family.IPV6, "icmpv6 type admin-")]
)
def test_connects_like_those_given_away_are_refused_at_once(family: Family, kind: str):
    """Only their first packet, and by an error that no server that refuses sends."""
    word = family.value
    assert (
        ruleset.make_given(family)
        .splitlines()[-1]
        .startswith(
            f"add rule {word} lb_given out tcp flags & (syn|ack) == syn"
            f" {word} daddr . tcp dport . {word} saddr . tcp sport @given reject with {kind}"
        )
    )


def test_what_was_given_away_is_refused_until_it_is_back():
    """Each for its rest of a day; what came back is added before it is deleted, as it may have expired."""
    assert ruleset.give(Family.IPV4, {_ENDS: 1.5, ("192.0.2.9", 1, "192.0.2.100", 2): 7.0}) == (
        "add element ip lb_given given { 192.0.2.9 . 40000 . 192.0.2.100 . 6443 timeout 2s,"
        " 192.0.2.9 . 1 . 192.0.2.100 . 2 timeout 7s }"
    )
    added, deleted = ruleset.take_back(Family.IPV4, [_ENDS]).splitlines()
    assert added == "add element ip lb_given given { 192.0.2.9 . 40000 . 192.0.2.100 . 6443 }"
    assert deleted == added.replace("add", "delete", 1)


_STRANGE = st.tuples(
    st.sampled_from(["192.0.2.9", "fd00::9", "fe80::1%eth0", "", "x }", "192.0.2.9/24"]),
    st.integers(-1, 70000),
    st.sampled_from(["192.0.2.100", "fd00::100", "fe80::2%e }", ";"]),
    st.integers(-1, 70000),
)


@given(st.lists(st.tuples(_STRANGE, st.floats(0.0, 2e5))))
def test_of_a_file_only_connections_are_used(kept: list[tuple[ruleset.Ends, float]]):
    """What is put into a script is addresses of one family and ports, and is not older than a day."""
    found = ruleset.still_given(kept, now=1000.0)
    assert set(found.items()) <= set(kept)
    for (there, port, here, ours), until in found.items():
        assert (there, here) in {("192.0.2.9", "192.0.2.100"), ("fd00::9", "fd00::100")}
        assert 1 <= min(port, ours) <= max(port, ours) <= 65535
        assert 1000.0 < until <= 1000.0 + ruleset.GIVEN_FOR


def test_what_a_file_has_is_given(monkeypatch: pytest.MonkeyPatch):
    """What has expired is not, and no more than a limit."""
    other = ("192.0.2.9", 40001, "192.0.2.100", 6443)
    assert ruleset.still_given([(_ENDS, 2.0), (other, 1.0)], now=1.0) == {_ENDS: 2.0}
    monkeypatch.setattr(ruleset, "MOST_GIVEN", 1)
    assert ruleset.still_given([(_ENDS, 2.0), (other, 2.0)], now=1.0) == {_ENDS: 2.0}


def test_each_family_has_its_own_connections():
    """In their order, none twice; a family without any has no entry."""
    six = ("fd00::9", 1, "fd00::100", 2)
    assert ruleset.by_family([_ENDS, six, _ENDS]) == {Family.IPV4: [_ENDS], Family.IPV6: [six]}
    assert ruleset.by_family([six]) == {Family.IPV6: [six]}
