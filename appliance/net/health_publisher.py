"""Writes the health board: a change at once, fresh results of checks a little later, together."""

import os
import time
from collections.abc import Callable, Iterable
from typing import Final

import gevent
from gevent.event import Event

from appliance.core.roster import Key
from appliance.net.boards import BoardWriter
from appliance.wire.health_board import ServerHealth, assemble, encode_server

PAUSE: Final = 0.05
"""Seconds from one publish to the next, however much changes."""

FRESH: Final = 0.25
"""Seconds that results which change nothing may wait: a thousand checks a second make four boards."""

Describe = Callable[[Key, float, float], ServerHealth]


class HealthPublisher:
    """The board's records, encoded; only those that were touched are encoded anew.

    `describe` gives the record of a server at a moment, in monotonic and in Unix seconds.
    """

    def __init__(self, board: BoardWriter, describe: Describe) -> None:
        self._board = board
        self._describe = describe
        self._snapshot = 0
        self._records: dict[Key, bytes] = {}
        self._touched: set[Key] = set()
        self._changed = False
        self._urgent = Event()
        self._loop = gevent.spawn(self._publish_always)

    def replace(self, keys: Iterable[Key], *, snapshot: int) -> None:
        """Publish exactly these servers from now on, as a change."""
        self._records = dict.fromkeys(keys, b"")
        self._touched = set(self._records)
        self._snapshot = snapshot
        self._changed = True
        self._urgent.set()

    def touch(self, key: Key, *, changed: bool) -> None:
        """Publish a server anew, soon; `changed` says that the readers' decisions may differ."""
        self._touched.add(key)
        if changed:
            self._changed = True
            self._urgent.set()

    def close(self) -> None:
        """Publish what is outstanding and let go of the board."""
        self._loop.kill()
        self._publish()
        self._board.close()

    def _publish_always(self) -> None:
        while True:
            self._urgent.wait(FRESH)
            if self._changed or self._touched:
                self._publish()
                gevent.sleep(PAUSE)

    def _publish(self) -> None:
        now, wall = time.monotonic(), time.time()
        changed, self._changed = self._changed, False
        touched, self._touched = self._touched, set()
        self._urgent.clear()
        for key in touched & self._records.keys():
            self._records[key] = encode_server(self._describe(key, now, wall))
        payload = assemble(
            list(self._records.values()), snapshot=self._snapshot, pid=os.getpid(), written_at=wall
        )
        self._board.publish(payload, changed=changed)
