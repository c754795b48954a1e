"""A transaction of nftables as JSON: commands go in, and all of them are done or none (libnftables-json(5)).

A command is what the manual shows, as plain values: `{"add": {"table": {"family": "ip", "name": "t"}}}`. The
functions here make those that are wanted; others can be written down just as well. Chains are listed one by
one: libnftables 1.0.6 takes the flags of a table with an owner from memory that has nothing to do with them.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

Command = Mapping[str, object]
Statement = Mapping[str, object]


class Family(StrEnum):
    """Families of tables that see one version of IP."""

    IPV4 = "ip"
    IPV6 = "ip6"


def encode(commands: Iterable[Command]) -> bytes:
    """Return the transaction."""
    return msgspec.json.encode({"nftables": list(commands)})


def add_table(family: Family, table: str) -> Command:
    """Return the command that makes a table; one that is there stays as it is."""
    return {"add": {"table": {"family": family.value, "name": table}}}


def delete_table(family: Family, table: str) -> Command:
    """Return the command that removes a table with all that is in it; it has to be there."""
    return {"delete": {"table": {"family": family.value, "name": table}}}


def add_nat_chain(family: Family, table: str, chain: str, *, hook: str, priority: int) -> Command:
    """Return the command that makes a chain which sees the first packet of each connection."""
    place = {"family": family.value, "table": table, "name": chain}
    kind = {"type": "nat", "hook": hook, "prio": priority, "policy": "accept"}
    return {"add": {"chain": {**place, **kind}}}


def flush_chain(family: Family, table: str, chain: str) -> Command:
    """Return the command that removes the rules of a chain."""
    return {"flush": {"chain": {"family": family.value, "table": table, "name": chain}}}


def list_chain(family: Family, table: str, chain: str) -> Command:
    """Return the command whose answer holds a chain with its rules."""
    return {"list": {"chain": {"family": family.value, "table": table, "name": chain}}}


def list_counters(family: Family, table: str) -> Command:
    """Return the command whose answer holds the named counters of a table."""
    return {"list": {"counters": {"family": family.value, "table": table}}}


def list_tables() -> Command:
    """Return the command whose answer names every table."""
    return {"list": {"tables": None}}


def list_ruleset() -> Command:
    """Return the command whose answer holds all tables with all that is in them."""
    return {"list": {"ruleset": None}}


def add_rule(
    family: Family, table: str, chain: str, *statements: Statement, comment: str | None = None
) -> Command:
    """Return the command that adds a rule at the end of a chain."""
    rule: dict[str, object] = {"family": family.value, "table": table, "chain": chain}
    rule["expr"] = list(statements)
    if comment is not None:
        rule["comment"] = comment
    return {"add": {"rule": rule}}


def header_field(protocol: str, name: str) -> Statement:
    """Return the expression for a field of a packet's header, such as `tcp`, `dport`."""
    return {"payload": {"protocol": protocol, "field": name}}


def equals(left: Statement, right: object) -> Statement:
    """Return the statement that goes on with packets for which an expression has this value."""
    return {"match": {"op": "==", "left": left, "right": right}}


def change(left: Statement, value: object) -> Statement:
    """Return the statement that gives a field of the packet another value."""
    return {"mangle": {"key": left, "value": value}}
