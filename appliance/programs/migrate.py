"""The program `migrate`: sessions move to the node that serves their virtual IP, so that their node may go.

It takes over connections from the kernel of one node into that of the other (TCP_REPAIR), with what workers
know of their sessions, over TLS. Until a batch is committed its node has it, and nobody afterwards but the
other one. It stops after the proxies, whose sessions move while they drain.
"""

import sys

from appliance.migrate.commands import FOR_READERS, MigrateCommands
from appliance.migrate.migrator import Migrator
from appliance.model.program_names import MIGRATE
from appliance.net.files import snapshots
from appliance.net.starting import hub_start


def main() -> int:
    """Run until TERM or INT; return 1 if another one has this runtime directory."""
    begun = hub_start.begin(MIGRATE)
    if begun is None:
        return 1
    paths, log, stop = begun.paths, begun.log, begun.stop
    faults: list[BaseException | None] = []

    def end(fault: BaseException | None) -> None:
        migrator.log.error("migrate-crashed", exc_info=fault)
        faults.append(fault)
        stop.set()

    migrator = Migrator(paths, log, on_fault=end)
    accepted = snapshots.accepted(paths, log)
    if accepted is not None:
        migrator.apply(accepted)
    control = begun.answer(MigrateCommands(paths, migrator).handlers(), for_readers=FOR_READERS)
    stop.wait()
    control.close()
    migrator.close()
    begun.heartbeat.close()
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
