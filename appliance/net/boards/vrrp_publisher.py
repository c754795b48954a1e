"""Writes the board of `vrrp`: state changes at once, counters a little later, together.

The board is a file in shared memory that this process alone writes (board_layout). From it, the next `vrrp`
reads which routers were active, and when each sent its last advertisement.
"""

import time
from collections.abc import Callable
from typing import Final

from appliance.net.boards.board_writer import BoardWriter

FRESH: Final = 0.1
"""Seconds until counters are published; the default of `VrrpPublisher.fresh`."""

_RETRY: Final = 0.5


class VrrpPublisher:
    """The board, written from the loop; `describe` returns its payload.

    `fresh` is the maximum age of counters in seconds. `on_trouble` is called once with the reason if the
    board cannot be written, and with "" once it can again.
    """

    def __init__(
        self, board: BoardWriter, describe: Callable[[], bytes], *, on_trouble: Callable[[str], None]
    ) -> None:
        self._board = board
        self._describe = describe
        self._on_trouble = on_trouble
        self.fresh = FRESH
        self._trouble = ""
        self._changed = True
        self.deadline: float | None = 0.0

    def touch(self) -> None:
        """Publish in the next turn of the loop, as a change that may affect readers' decisions."""
        self._changed = True
        now = time.monotonic()
        self.deadline = now if self.deadline is None else min(self.deadline, now)

    def tick(self, now: float) -> None:
        """Publish; called by the loop at `deadline`."""
        changed, self._changed = self._changed, False
        try:
            self._board.publish(self._describe(), changed=changed)
        except OSError as error:
            self._changed = changed
            self.deadline = now + _RETRY
            self._report(error.strerror or str(error))
        else:
            self.deadline = now + self.fresh
            self._report("")

    def close(self) -> None:
        """Publish once more and unmap the board."""
        self.tick(time.monotonic())
        self._board.close()

    def _report(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            self._on_trouble(trouble)
