"""The program `migrate`: sessions move to the node that serves their virtual IP, so that their node may go.

It takes over connections from the kernel of one node into that of the other (TCP_REPAIR), with what workers
know of their sessions, over TLS. Until a batch is committed its node has it, and nobody afterwards but the
other one. It stops after the proxies, whose sessions move while they drain.
"""

import sys

from appliance.migrate.commands import MigrateCommands
from appliance.migrate.migrator import Migrator
from appliance.model.program_names import MIGRATE
from appliance.net.starting import hub_start


def main() -> int:
    """Run until TERM or INT; return 1 if another one has this runtime directory."""
    begun = hub_start.begin(MIGRATE)
    if begun is None:
        return 1
    paths, log = begun.paths, begun.log
    end = begun.ends_after(lambda fault: log.error("migrate-crashed", exc_info=fault))
    migrator = Migrator(paths, log, on_fault=end)
    begun.apply_accepted(migrator)
    control = begun.answer(MigrateCommands(paths, migrator))
    begun.stop.wait()
    control.close()
    migrator.close()
    return begun.end()


if __name__ == "__main__":
    sys.exit(main())
