"""Writes the health board: state changes at once, other results a little later, together.

The board is a file in shared memory that this process alone writes (board_layout). A failed write, for
example on a full file system, is repeated; until then readers have the last payload.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

import gevent
from gevent.event import Event

from appliance.core.checks.checked_servers import Key
from appliance.net.boards.board_writer import BoardWriter
from appliance.net.loop.turns import until_next
from appliance.wire.boards.health_board import (
    PoolHealthRecord,
    ServerHealthRecord,
    assemble,
    encode_server,
)

PAUSE: Final = 0.05
"""Minimum seconds between publishes; longer for more than a thousand servers."""

_PAUSE_FOR_EACH: Final = 0.000_05
"""Part of it per server: the whole board is written, and each worker reads all of it."""

FRESH: Final = 0.25
"""Most seconds that results without a state change wait: a thousand checks a second are four publishes."""

RETRY: Final = 0.5
"""Seconds from a failed publish to the next try."""

Describe = Callable[[Key, float, float], ServerHealthRecord]
DescribePools = Callable[[float, float], Sequence[PoolHealthRecord]]


def pause(servers: int) -> float:
    """Return the seconds between publishes: while workers read boards, they move no bytes."""
    return max(PAUSE, servers * _PAUSE_FOR_EACH)


class HealthPublisher:
    """The encoded records of all servers; only touched ones are encoded again.

    `describe` returns the record of a server at a moment, given in monotonic and in Unix seconds, and
    `describe_pools` those of all pools. `on_trouble` is called once with the reason if the board cannot be
    written, and with "" once it can again; `on_fault` is called if a bug ended the publishing.
    """

    def __init__(
        self,
        board: BoardWriter,
        describe: Describe,
        describe_pools: DescribePools,
        *,
        on_trouble: Callable[[str], None],
        on_fault: Callable[[BaseException | None], None],
    ) -> None:
        self._board = board
        self._describe = describe
        self._describe_pools = describe_pools
        self._on_trouble = on_trouble
        self._troubled = False
        self._snapshot = 0
        self._records: dict[Key, bytes] = {}
        self._touched: set[Key] = set()
        self._changed = False
        self._urgent = Event()
        self._loop = gevent.spawn(self._publish_always)
        self._loop.link_exception(lambda loop: on_fault(loop.exception))

    def replace(self, keys: Iterable[Key], *, snapshot: int, kept: Collection[Key] = ()) -> None:
        """Publish exactly these servers from now on, as a change; of those in `kept` nothing differs."""
        before = self._records
        self._records = {key: before.get(key, b"") if key in kept else b"" for key in keys}
        self._touched.update(key for key, encoded in self._records.items() if not encoded)
        self._snapshot = snapshot
        self._changed = True
        self._urgent.set()

    def touch(self, key: Key, *, changed: bool) -> None:
        """Publish the record of a server soon; `changed` means that readers' decisions may differ."""
        self._touched.add(key)
        if changed:
            self._changed = True
            self._urgent.set()

    def close(self) -> None:
        """Publish pending records and unmap the board."""
        self._loop.kill()
        self._publish()
        self._board.close()

    def _publish_always(self) -> None:
        while True:
            self._urgent.wait(until_next(FRESH))
            if self._changed or self._touched:
                self._publish()
                gevent.sleep(RETRY if self._troubled else pause(len(self._records)))

    def _publish(self) -> None:
        now, wall = time.monotonic(), time.time()
        changed, self._changed = self._changed, False
        touched, self._touched = self._touched, set()
        self._urgent.clear()
        for key in touched & self._records.keys():
            self._records[key] = encode_server(self._describe(key, now, wall))
        payload = assemble(
            list(self._records.values()),
            self._describe_pools(now, wall),
            snapshot=self._snapshot,
            pid=os.getpid(),
            written_at=wall,
        )
        try:
            self._board.publish(payload, changed=changed)
        except OSError as error:
            self._touched |= touched
            self._changed |= changed
            self._report(error.strerror or str(error))
        else:
            self._report("")

    def _report(self, reason: str) -> None:
        if bool(reason) is not self._troubled:
            self._troubled = bool(reason)
            self._on_trouble(reason)
