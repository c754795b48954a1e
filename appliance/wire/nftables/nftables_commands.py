"""Commands of nft(8) that several programs give.

Chains are listed one by one: libnftables 1.0.6 takes the flags of a table with an owner from memory that has
nothing to do with them.
"""

from enum import StrEnum
from typing import Final

LIST_TABLES: Final = "list tables"
"""Its answer names every table."""

LIST_RULESET: Final = "list ruleset"
"""Its answer holds all tables with all that is in them."""


class Family(StrEnum):
    """Families of tables that see one version of IP."""

    IPV4 = "ip"
    IPV6 = "ip6"


def delete_table(family: Family, table: str) -> str:
    """Return the command that removes a table with all that is in it; it has to be there."""
    return f"delete table {family.value} {table}"


def list_chain(family: Family, table: str, chain: str) -> str:
    """Return the command whose answer holds a chain with its rules."""
    return f"list chain {family.value} {table} {chain}"


def list_counters(family: Family, table: str) -> str:
    """Return the command whose answer holds the named counters of a table."""
    return f"list counters table {family.value} {table}"
