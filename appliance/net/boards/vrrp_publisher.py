"""Writes the board of `vrrp`: a change at once, figures a little later, together.

The next start reads there who was active and when it advertised last.
"""

import time
from collections.abc import Callable
from typing import Final

from appliance.net.boards.boards import BoardWriter

FRESH: Final = 0.1
"""Seconds after which figures are published, where nothing else is said."""

_RETRY: Final = 0.5


class VrrpPublisher:
    """The board, written from the loop; `describe` gives its payload at a moment.

    `fresh` is how old figures may become. `on_trouble` is called with the reason when it cannot be written,
    once, and with "" when it can again.
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
        """Publish soon, as a change that readers' decisions may depend on."""
        self._changed = True
        now = time.monotonic()
        self.deadline = now if self.deadline is None else min(self.deadline, now)

    def tick(self, now: float) -> None:
        """Publish."""
        changed, self._changed = self._changed, False
        try:
            self._board.publish(self._describe(), changed=changed)
        except OSError as error:
            self._changed = changed
            self.deadline = now + _RETRY
            self._say(error.strerror or str(error))
        else:
            self.deadline = now + self.fresh
            self._say("")

    def close(self) -> None:
        """Publish once more and let go of the board."""
        self.tick(time.monotonic())
        self._board.close()

    def _say(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            self._on_trouble(trouble)
