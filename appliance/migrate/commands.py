"""What `migrate` answers on its control socket: the commands of `reload`, workers' offers, and queries."""

from collections.abc import Mapping

import msgspec

from appliance.migrate.migrator import Migrator, interfaces_of
from appliance.model.paths import Paths
from appliance.model.program_names import MIGRATE
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.control.common_commands import ReloadCommands
from appliance.net.control.control_server import Call, Handler
from appliance.wire.lines.control import Answer, good
from appliance.wire.lines.migrate_status import MigrateStatus


class MigrateCommands(ReloadCommands):
    """The commands by their names; those of a reload are in `ReloadCommands`."""

    def __init__(self, paths: Paths, migrator: Migrator) -> None:
        self._migrator = migrator
        super().__init__(
            MIGRATE,
            paths,
            applied=lambda: migrator.snapshot,
            apply=migrator.apply,
            differs=lambda proposed, applied: _used(proposed) != _used(applied),
        )

    def handlers(self) -> Mapping[str, Handler]:
        """Return the commands by their names."""
        return {
            "rebalance": self._rebalance,
            "count-lost": self._count_lost,
            **self._migrator.departures.handlers(),
            **super().handlers(),
        }

    def _rebalance(self, call: Call) -> Answer:
        """Give a node a share of the sessions of shared addresses; answer what became of them."""
        moved = self._migrator.rebalance(call.question.text("node"), call.question.number("share"))
        return good(addresses=msgspec.to_builtins(moved))

    def _count_lost(self, call: Call) -> Answer:
        """Count what a run before this one had when it died; its workers have told the operator."""
        self._migrator.count_lost(call.question.integer("sessions"))
        return good()

    def status(self) -> object:
        """Return the answer to `status`."""
        migrator = self._migrator
        return MigrateStatus(
            **self.head(),
            trouble=migrator.trouble,
            departures=tuple(migrator.reports.values()),
            given=migrator.departures.given.total(),
            taken=migrator.taken,
            lost=migrator.lost,
        )


def _used(snapshot: Snapshot) -> object:
    """Return the part of a snapshot that this program uses."""
    return snapshot.linger, interfaces_of(snapshot)
