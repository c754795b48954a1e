"""The rules of nftables, as values; tests/kernel/redirect/test_rules.py has the kernel obey them."""

import pytest
from support.values.snapshots import frontend, group, redirect, snapshot

from appliance.core.redirect.rules import (
    FLOWS_TABLE,
    TABLE,
    Redirection,
    is_monitors,
    names_on,
    redirections,
    script,
)
from appliance.core.redirect.switch import switches
from appliance.model.snapshot.frontends import Bind
from appliance.wire.nftables.nftables_answer import NftablesObject
from appliance.wire.nftables.nftables_commands import Family

pytestmark = pytest.mark.pure

EVERY = Bind(host="::", port=9445)


def _means(*sources: str, binds: tuple[Bind, ...] = (EVERY,)) -> tuple[Redirection, ...]:
    given = redirect(sources=tuple(Bind(host=each, port=6443) for each in sources))
    made = snapshot(groups=[group("api", frontends=[frontend("k", redirect=given, binds=binds)])])
    return tuple(redirections(switches(made)[0]))


def _rules(text: str, table: str) -> list[tuple[str, str]]:
    """Return chain and statements of each rule of a table."""
    words = (line.split(maxsplit=5) for line in text.splitlines() if line.startswith("add rule "))
    return [(chain, statements) for _, _, _, where, chain, statements in words if where == table]


def test_every_address_leads_to_the_virtual_ip_itself_and_our_port():
    """Where the bind is every address, whichever family; the node's own clients are sent to the port."""
    four, six = _means("10.0.0.200", "fd00::200")
    assert (four.family, str(four.target), four.port_only) == (Family.IPV4, "10.0.0.200:9445", True)
    assert (six.family, str(six.target), six.port_only) == (Family.IPV6, "[fd00::200]:9445", True)
    assert _rules(script(Family, [four, six], guarded=True), TABLE)[:4] == [
        (
            "prerouting",
            (
                "ip daddr 10.0.0.200 tcp dport 6443 fib daddr type local tcp dport set 9445"
                ' socket transparent 0 dnat to 10.0.0.200:9445 comment "api/k"'
            ),
        ),
        (
            "prerouting",
            (
                "ip daddr 10.0.0.200 tcp dport 9445 ct original proto-dst 6443 tcp dport set 6443"
                ' comment "api/k"'
            ),
        ),
        (
            "output",
            'ip daddr 10.0.0.200 tcp dport 6443 oifname "lo" redirect to :9445 comment "api/k"',
        ),
        (
            "prerouting",
            (
                "ip6 daddr fd00::200 tcp dport 6443 fib daddr type local tcp dport set 9445"
                ' socket transparent 0 dnat to [fd00::200]:9445 comment "api/k"'
            ),
        ),
    ]


def test_a_bind_of_one_address_is_where_they_are_sent():
    """Also the node's own: `redirect` would send them to a loopback address, where nobody listens."""
    [one] = _means("10.0.0.200", binds=(Bind(host="fd00::1", port=9445), Bind(host="10.0.0.34", port=9446)))
    assert (str(one.target), one.port_only) == ("10.0.0.34:9446", False)
    rules = _rules(script([Family.IPV4], [one], guarded=True), TABLE)
    assert ["dnat to 10.0.0.34:9446" in text for _, text in rules] == [True, False, True]
    assert "tcp dport set 9446 ip daddr set 10.0.0.34 socket" in rules[0][1]
    assert "ip daddr set 10.0.0.200 tcp dport set 6443" in rules[1][1]


def test_a_family_without_a_bind_has_no_rule():
    """The rules of the configuration refuse it; a program does not end by it."""
    assert _means("fd00::200", binds=(Bind(host="0.0.0.0", port=9445),)) == ()


def test_without_the_kernel_s_question():
    """An older kernel gets monitor's rules as they are."""
    rules = _rules(script([Family.IPV4], _means("10.0.0.200"), guarded=False), TABLE)
    assert [chain for chain, _ in rules] == ["prerouting", "output"]
    assert "socket" not in rules[0][1]


def test_a_transaction_leads_from_any_state_to_the_wanted_one():
    """Chains are made and emptied first; a family without a redirect that is on stays empty."""
    text = script(Family, _means("10.0.0.200"), guarded=True)
    assert text.count("flush chain ") == 6
    assert len(_rules(text, TABLE)) == 3
    assert _rules(script(Family, (), guarded=True), TABLE) == []


def test_what_was_on_stands_in_the_other_table():
    """Its rules have the kernel go on with connections, and say by their comments what was on."""
    rules = _rules(script([Family.IPV4], _means("10.0.0.200", "10.0.0.201"), guarded=True), FLOWS_TABLE)
    comments = [text.partition('comment "')[2].rstrip('"') for _, text in rules]
    assert len(comments) == 2
    assert names_on(NftablesObject(kind="rule", fields={"comment": each}) for each in comments) == {"api/k"}


def test_monitor_s_rules_are_known_by_their_comment():
    """As monitor itself knows them; chains and rules of others in its table mean nothing."""
    theirs = NftablesObject(kind="rule", fields={"comment": "OCP_API_LB_REDIRECT"})
    other = NftablesObject(kind="rule", fields={"comment": 7})
    assert is_monitors([other, theirs])
    assert not is_monitors([other, NftablesObject(kind="chain", fields=theirs.fields)])
