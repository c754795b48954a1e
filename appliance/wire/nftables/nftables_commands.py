"""Commands of nft(8) that several programs use.

Chains are listed one by one: libnftables 1.0.6 reads the flags of a table with an owner from unrelated
memory.
"""

from enum import StrEnum
from typing import Final

LIST_TABLES: Final = "list tables"
"""The answer names every table."""

LIST_RULESET: Final = "list ruleset"
"""The answer holds all tables with their content."""


class Family(StrEnum):
    """Families of tables that see one IP version."""

    IPV4 = "ip"
    IPV6 = "ip6"


def delete_table(family: Family, table: str) -> str:
    """Return the command that removes a table with its content; the table must exist."""
    return f"delete table {family.value} {table}"


def list_chain(family: Family, table: str, chain: str) -> str:
    """Return the command whose answer holds a chain with its rules."""
    return f"list chain {family.value} {table} {chain}"


def list_counters(family: Family, table: str) -> str:
    """Return the command whose answer holds the named counters of a table."""
    return f"list counters table {family.value} {table}"
