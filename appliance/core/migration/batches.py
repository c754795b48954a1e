"""Which node has the sessions of a batch, when messages or nodes may be lost at any moment.

The giver holds them still until it commits. From then on it may continue with them only if the taker has
said that it did not take them, and never will. Without that answer they are given up here: the taker has
them, or nobody. So no session is ever on two nodes, and a loss costs one batch at most.

A taker that has died since cannot say that it did not take them: it may have received and sent bytes of
theirs. So each run of a taker has a number, and only the run that got `Commit` is believed.
"""

from collections import OrderedDict
from enum import Enum
from typing import Final

_REMEMBERED: Final = 1000
"""Batches whose end a taker remembers. A giver asks within seconds, and each has few under way."""


class Having(Enum):
    """What the giver does with the sessions of a batch that it has committed."""

    GONE = "gone"  # the taker has them
    BACK = "back"  # the giver continues with them
    DOUBTFUL = "doubtful"  # the taker has them, or nobody: they are given up here


def after_commit(*, taken: bool | None, same_run: bool = True) -> Having:
    """Return what became of a committed batch, by its taker's answer, and whether the same run gave it."""
    if taken is None or not same_run:
        return Having.DOUBTFUL
    return Having.GONE if taken else Having.BACK


class TakenBatches:
    """The batches of a taker: it takes each at most once, and none that it was asked about before."""

    def __init__(self) -> None:
        self._ended: OrderedDict[bytes, bool] = OrderedDict()

    def take(self, batch: bytes) -> bool:
        """Note that a batch is taken; return False if it must not be, as it has ended."""
        if batch in self._ended:
            return False
        self._end(batch, taken=True)
        return True

    def failed(self, batch: bytes) -> None:
        """Note that a batch could not be taken after all, before anything of it was sent."""
        self._ended.pop(batch, None)
        self._end(batch, taken=False)

    def ask(self, batch: bytes) -> bool:
        """Return whether a batch was taken; if it was not, it never will be."""
        if batch not in self._ended:
            self._end(batch, taken=False)
        return self._ended[batch]

    def _end(self, batch: bytes, *, taken: bool) -> None:
        self._ended[batch] = taken
        while len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)
