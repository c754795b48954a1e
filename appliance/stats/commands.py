"""The commands on the control socket of `stats`: for `reload`, and for queries of its status."""

import os
import time
from collections.abc import Mapping

from appliance.model.paths import Paths
from appliance.model.program_names import STATS
from appliance.net.control.control_server import Call, Handler
from appliance.net.files import snapshots
from appliance.stats.service import Prepared, StatsRefused, StatsService
from appliance.wire.lines.control import Answer, bad, good


class StatsCommands:
    """The commands. Each may be repeated: `reload` does so after a timeout or its own crash."""

    def __init__(self, paths: Paths, service: StatsService) -> None:
        self._paths = paths
        self._service = service
        self._started_at = time.time()
        self._prepared: Prepared | None = None

    def handlers(self) -> Mapping[str, Handler]:
        """Return the commands by their names."""
        return {
            "status": self._status,
            "prepare": self._prepare,
            "commit": self._commit,
            "abort": self._abort,
        }

    def _status(self, _: Call) -> Answer:
        return good(
            program=STATS,
            pid=os.getpid(),
            started_at=self._started_at,
            snapshot=self._service.number,
            pending=self._prepared.number if self._prepared else None,
            socket_failures=self._service.socket_failures,
            not_kept=self._service.not_kept,
        )

    def _prepare(self, call: Call) -> Answer:
        """Bind the addresses and read the files of a proposed snapshot; nothing changes yet."""
        snapshot = snapshots.proposed(self._paths, call.question.integer("snapshot"))
        try:
            self._prepared = self._service.prepare(snapshot)
        except StatsRefused as error:
            return bad(*error.reasons)
        return good(changed=self._prepared.changed, generation=None)

    def _commit(self, call: Call) -> Answer:
        """Serve a snapshot; one that an earlier process prepared is read again."""
        number = call.question.integer("snapshot")
        if self._service.number != number:
            prepared, self._prepared = self._prepared, None
            if prepared is None or prepared.number != number:
                try:
                    prepared = self._service.prepare(snapshots.proposed(self._paths, number))
                except StatsRefused as error:
                    return bad(*error.reasons)
            self._service.commit(prepared)
        return good(snapshot=number)

    def _abort(self, call: Call) -> Answer:
        """Discard a prepared snapshot."""
        number = call.question.integer("snapshot")
        if self._prepared is not None and self._prepared.number == number:
            self._prepared = None
            self._service.abort()
        return good()
