"""The result of decoders that have read a good beginning and need more bytes."""

from enum import Enum


class Need(Enum):
    """What a decoder returns where it cannot return a value yet."""

    MORE = "more"
