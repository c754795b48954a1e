"""What `migrate` answers on its control socket: the commands of `reload`, workers' offers, and queries."""

import os
import time
from collections.abc import Mapping
from typing import Final

from appliance.migrate.migrator import Migrator, interfaces_of
from appliance.model.paths import Paths
from appliance.model.program_names import MIGRATE
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.control.control_server import Call, Handler
from appliance.net.control.reload_commands import ReloadCommands
from appliance.wire.lines import status_answer
from appliance.wire.lines.control import Answer, good
from appliance.wire.lines.migrate_status import MigrateStatus

FOR_READERS: Final = frozenset({"status"})
"""Commands that members of `group:` may also use."""


class MigrateCommands:
    """The commands by their names; those of a reload are in `ReloadCommands`."""

    def __init__(self, paths: Paths, migrator: Migrator) -> None:
        self._migrator = migrator
        self._started_at = time.time()
        self._reload = ReloadCommands(
            paths,
            applied=lambda: migrator.snapshot,
            apply=migrator.apply,
            differs=lambda proposed: _used(proposed) != _used(migrator.snapshot),
        )

    def handlers(self) -> Mapping[str, Handler]:
        """Return the commands by their names."""
        return {
            "status": self._status,
            **self._migrator.departures.handlers(),
            **self._reload.handlers(),
        }

    def _status(self, _: Call) -> Answer:
        migrator = self._migrator
        status = MigrateStatus(
            program=MIGRATE,
            pid=os.getpid(),
            started_at=self._started_at,
            snapshot=self._reload.number,
            pending=self._reload.pending,
            trouble=migrator.trouble,
            departures=tuple(migrator.reports.values()),
            given=migrator.departures.given.total(),
            taken=migrator.taken,
            lost=migrator.departures.lost,
        )
        return good(**status_answer.encode(status))


def _used(snapshot: Snapshot | None) -> object:
    """Return the part of a snapshot that this program uses."""
    return None if snapshot is None else (snapshot.linger, interfaces_of(snapshot))
