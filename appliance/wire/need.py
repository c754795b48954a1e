"""The result of decoders that have read a valid beginning and need more bytes."""

from enum import Enum


class Need(Enum):
    """Returned by a decoder that cannot return a value yet."""

    MORE = "more"
