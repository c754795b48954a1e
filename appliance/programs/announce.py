"""The program `announce`: has routers send connections for shared addresses to this node, while it serves.

The addresses are on `lo` of all nodes. A kernel table, which BIRD or another daemon of this machine reads,
has a route for each one that this node serves, and another table for each one that it drains. When everything
stops it is among the first: routers choose other nodes while the proxies still accept.
"""

import sys

from appliance.announce import announce_leftovers
from appliance.announce.announcer import Announcer
from appliance.announce.commands import AnnounceCommands
from appliance.model.paths import Paths
from appliance.model.program_names import ANNOUNCE
from appliance.net.events.event_board import EventBoard
from appliance.net.files import snapshots
from appliance.net.starting import hub_start
from appliance.net.supervision.appliance_end import everything_ends


def main() -> int:
    """Run until TERM or INT; return 1 if another one has this runtime directory."""
    begun = hub_start.begin(ANNOUNCE)
    if begun is None:
        return 1
    paths, log = begun.paths, begun.log
    end = begun.ends_after(lambda fault: log.error("announce-crashed", exc_info=fault))
    publish = EventBoard(paths.event_board(ANNOUNCE), ANNOUNCE)
    announcer = Announcer(paths, log, on_fault=end, publish=publish)
    begun.apply_accepted(announcer)
    control = begun.answer(AnnounceCommands(paths, announcer))
    begun.stop.wait()
    # Without a supervisord, another `run` continues with what is in the kernel, or its watchdog ends BIRD.
    ends = not begun.faults and everything_ends(paths, without_supervisord=False)
    if ends:
        announcer.leave()
    control.close()
    announcer.close(ends=ends)
    publish.close()
    status = begun.end()
    if not ends and not begun.faults and not _is_wanted(paths):
        announce_leftovers.remove_all(paths, log)
    return status


def _is_wanted(paths: Paths) -> bool:
    """Return whether there are still shared addresses in the accepted snapshot."""
    accepted = snapshots.readable(paths.accepted)
    return accepted is None or bool(accepted.shared_ips)


if __name__ == "__main__":
    sys.exit(main())
