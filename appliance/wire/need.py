"""The ending that a decoder shares with every other: what came so far is good, and there must be more."""

from enum import Enum


class Need(Enum):
    """What a decoder wants instead of giving a value."""

    MORE = "more"
