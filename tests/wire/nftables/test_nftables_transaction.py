"""Commands for nftables, as libnftables-json(5) shows them."""

import json

import pytest

from appliance.wire.nftables.nftables_transaction import (
    Family,
    add_nat_chain,
    add_rule,
    add_table,
    change,
    delete_table,
    encode,
    equals,
    flush_chain,
    header_field,
    list_chain,
    list_counters,
    list_ruleset,
    list_tables,
)

pytestmark = pytest.mark.pure

_PLACE = {"family": "ip6", "table": "t"}


def test_a_transaction_is_one_list():
    """In the order in which the kernel is to do it."""
    commands = (
        add_table(Family.IPV6, "t"),
        add_nat_chain(Family.IPV6, "t", "c", hook="output", priority=-100),
        flush_chain(Family.IPV6, "t", "c"),
        delete_table(Family.IPV6, "t"),
        list_chain(Family.IPV6, "t", "c"),
        list_counters(Family.IPV6, "t"),
        list_tables(),
        list_ruleset(),
    )
    chain = {**_PLACE, "name": "c", "type": "nat", "hook": "output", "prio": -100, "policy": "accept"}
    assert json.loads(encode(commands)) == {
        "nftables": [
            {"add": {"table": {"family": "ip6", "name": "t"}}},
            {"add": {"chain": chain}},
            {"flush": {"chain": {**_PLACE, "name": "c"}}},
            {"delete": {"table": {"family": "ip6", "name": "t"}}},
            {"list": {"chain": {**_PLACE, "name": "c"}}},
            {"list": {"counters": {"family": "ip6", "table": "t"}}},
            {"list": {"tables": None}},
            {"list": {"ruleset": None}},
        ]
    }


def test_a_rule_is_statements():
    """With or without a comment."""
    port = header_field("tcp", "dport")
    statements = (equals(port, 6443), change(port, 9445))
    expr = [
        {"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 6443}},
        {"mangle": {"key": {"payload": {"protocol": "tcp", "field": "dport"}}, "value": 9445}},
    ]
    rule = {"family": "ip", "table": "t", "chain": "c", "expr": expr}
    assert add_rule(Family.IPV4, "t", "c", *statements) == {"add": {"rule": rule}}
    assert add_rule(Family.IPV4, "t", "c", *statements, comment="x") == {
        "add": {"rule": {**rule, "comment": "x"}}
    }
