"""The program `linger`: connections stay on the node that has them when their virtual IP moves to another.

The nodes report to each other which virtual IPs they serve, and which they keep for connections. Kernel rules
forward packets for a connection of another node to that node, which answers directly. It stops after the
proxies: until they have drained, their connections need the address.
"""

import sys

from appliance.linger.commands import LingerCommands
from appliance.linger.lingerer import Lingerer
from appliance.model.paths import Paths
from appliance.model.program_names import LINGER
from appliance.net.events.event_board import EventBoard
from appliance.net.files import snapshots
from appliance.net.starting import hub_start
from appliance.net.supervision.appliance_end import everything_ends


def main() -> int:
    """Run until TERM or INT; return 1 if another one has this runtime directory."""
    begun = hub_start.begin(LINGER)
    if begun is None:
        return 1
    paths, log = begun.paths, begun.log
    end = begun.ends_after(lambda fault: log.error("linger-crashed", exc_info=fault))
    publish = EventBoard(paths.event_board(LINGER), LINGER)
    lingerer = Lingerer(paths, log, publish=publish, on_fault=end)
    begun.apply_accepted(lingerer)
    control = begun.answer(LingerCommands(paths, lingerer))
    begun.stop.wait()
    control.close()
    # Without a supervisord, another `run` ends us and continues with the kernel's state; else it times out.
    ends = not begun.faults and (everything_ends(paths, without_supervisord=False) or not _is_wanted(paths))
    lingerer.close(ends=ends)
    return begun.end()


def _is_wanted(paths: Paths) -> bool:
    """Return whether virtual IPs still move with their connections in the accepted snapshot."""
    accepted = snapshots.readable(paths.accepted)
    return accepted is None or accepted.linger is not None


if __name__ == "__main__":
    sys.exit(main())
