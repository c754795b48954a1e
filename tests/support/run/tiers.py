"""How much the tests try: TIER is `check`, `test`, `all` or `full`, and `test` where nothing is said.

In the first two, which run with each change, property tests have few examples, the same in each run, and
fuzzing is short. In the others each run draws others: half of them in `all`, all of them in `full`.
"""

import os
from typing import Final

TIERS: Final = ("check", "test", "all", "full")
"""The tiers, the shortest first."""

_SHORT: Final = ("check", "test")
_PARTS: Final = {"check": 5, "test": 5, "all": 2, "full": 1}
_FEWEST: Final = 10


def tier() -> str:
    """Return the tier that runs.

    Raises ValueError for a word that is none: less would run than is meant.
    """
    named = os.environ.get("TIER") or "test"
    if named not in TIERS:
        raise ValueError(f"TIER={named} is none of {', '.join(TIERS)}")
    return named


def is_short() -> bool:
    """Return whether the tier is one that runs with each change."""
    return tier() in _SHORT


def examples(number: int) -> int:
    """Return how many examples a property test has in this tier, for `settings(max_examples=...)`."""
    return min(number, max(_FEWEST, number // _PARTS[tier()]))


def fuzz_seconds() -> str:
    """Return how long each target is fed where the command line says nothing."""
    return "0.04" if is_short() else "0.3"
