"""The program `discover`: watches the cluster's API, and makes pools follow it.

It has no privilege, and moves no bytes: without it, or without the API, servers stay as they are. Each list
is watched by a thread that blocks in the standard library's HTTP and TLS; greenlets do everything else.
"""

import os

from appliance.discovery.commands import DiscoverCommands
from appliance.discovery.service import DiscoverService
from appliance.model.program_names import DISCOVER
from appliance.net.starting import hub_start


def main() -> int:
    """Run until TERM or INT; return 1 if another one has this runtime directory."""
    begun = hub_start.begin(DISCOVER)
    if begun is None:
        return 1
    program = DiscoverService(begun.paths, begun.log)
    begun.apply_accepted(program)
    control = begun.answer(DiscoverCommands(begun.paths, program))
    begun.stop.wait()
    control.close()
    program.close()
    return begun.end()


if __name__ == "__main__":
    # Not sys.exit: a thread that waits for an API server must not keep the process alive.
    os._exit(main())
