"""The heartbeat of a program on gevent: a timer of its hub beats, so whatever blocks the hub stops it."""

import time
from pathlib import Path

from gevent import get_hub
from structlog.typing import FilteringBoundLogger

from appliance.net.boards.heartbeats import PAUSE, Heartbeat
from appliance.net.loop.turns import until_next


class HubHeartbeat:
    """Beats from its creation until `close`."""

    def __init__(self, path: Path, log: FilteringBoundLogger) -> None:
        self._heartbeat = Heartbeat(path)
        if self._heartbeat.trouble:
            log.warning("heartbeat-unseen", reason=self._heartbeat.trouble)
        self._beat()
        self._timer = get_hub().loop.timer(until_next(PAUSE), PAUSE)
        # Without the update it would be due by the loop's time, which stands still while a program starts.
        self._timer.start(self._beat, update=True)

    def _beat(self) -> None:
        self._heartbeat.beat(time.monotonic())

    def close(self) -> None:
        """Stop beating."""
        self._timer.close()
        self._heartbeat.close()
