"""The program `discover`: watches the cluster's API, and makes pools follow it.

It has no privilege, and moves no bytes: without it, or without the API, servers stay as they are. Each list
is watched by a thread that blocks in the standard library's HTTP and TLS; greenlets do everything else.
"""

import os

from appliance.discovery.commands import FOR_READERS, DiscoverCommands
from appliance.discovery.program import DiscoverProgram
from appliance.model.program_names import DISCOVER
from appliance.net.files import snapshots
from appliance.net.starting import hub_start


def main() -> int:
    """Run until TERM or INT; return 1 if another one has this runtime directory."""
    begun = hub_start.begin(DISCOVER)
    if begun is None:
        return 1
    paths, log, stop = begun.paths, begun.log, begun.stop
    program = DiscoverProgram(paths, log)
    accepted = snapshots.accepted(paths, log)
    if accepted is not None:
        program.apply(accepted)
    control = begun.answer(DiscoverCommands(paths, program).handlers(), for_readers=FOR_READERS)
    stop.wait()
    control.close()
    program.close()
    begun.heartbeat.close()
    return 0


if __name__ == "__main__":
    # Not sys.exit: a thread that waits for an API server must not keep the process alive.
    os._exit(main())
