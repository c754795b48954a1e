"""The program `linger`: connections stay on the node that has them when their virtual IP moves to another.

The nodes report to each other which virtual IPs they serve, and which they keep for connections. Kernel rules
forward packets for a connection of another node to that node, which answers directly. It stops after the
proxies: until they have drained, their connections need the address.
"""

import sys

from appliance.linger.commands import FOR_READERS, LingerCommands
from appliance.linger.lingerer import Lingerer
from appliance.model.paths import Paths
from appliance.model.program_names import LINGER
from appliance.model.snapshot.snapshot import SnapshotError
from appliance.net.events.event_board import EventBoard
from appliance.net.files import snapshots
from appliance.net.starting import hub_start
from appliance.net.supervision.appliance_end import everything_ends


def main() -> int:
    """Run until TERM or INT; return 1 if another one has this runtime directory."""
    begun = hub_start.begin(LINGER)
    if begun is None:
        return 1
    paths, log, stop = begun.paths, begun.log, begun.stop
    faults: list[BaseException | None] = []

    def end(fault: BaseException | None) -> None:
        lingerer.log.error("linger-crashed", exc_info=fault)
        faults.append(fault)
        stop.set()

    tell = EventBoard(paths.event_board(LINGER), LINGER)
    lingerer = Lingerer(paths, log, tell=tell, on_fault=end)
    accepted = snapshots.accepted(paths, log)
    if accepted is not None:
        lingerer.apply(accepted)
    control = begun.answer(LingerCommands(paths, lingerer).handlers(), for_readers=FOR_READERS)
    stop.wait()
    control.close()
    # Without a supervisord, another `run` ends us and continues with the kernel's state; else it times out.
    ends = not faults and (everything_ends(paths, without_supervisord=False) or not _is_wanted(paths))
    lingerer.close(ends=ends)
    begun.heartbeat.close()
    return 1 if faults else 0


def _is_wanted(paths: Paths) -> bool:
    """Return whether virtual IPs still move with their connections in the accepted snapshot."""
    try:
        accepted = snapshots.read(paths.accepted)
    except SnapshotError:
        return True
    return accepted is None or accepted.linger is not None


if __name__ == "__main__":
    sys.exit(main())
