"""The program `forward`: makes the kernel forward the connections of frontends with `forward: kernel`.

The rules of `redirect` lead to a proxy, which may have died; these lead to servers, and are useful without
this program. So they have no owner, and the kernel keeps them when it dies. If the whole appliance ends, this
program lets connections drain and removes the rules; if it ends alone, it leaves them to its successor.
"""

import sys

from appliance.forward.commands import FOR_READERS, ForwardCommands
from appliance.forward.forward_leftovers import CLAIM
from appliance.forward.forwarder import Forwarder
from appliance.forward.kernel_tables import KernelTables
from appliance.model.paths import Paths
from appliance.model.program_names import FORWARD
from appliance.net.files import snapshots
from appliance.net.netlink.namespace_claim import NamespaceClaim
from appliance.net.starting import hub_start
from appliance.net.supervision.appliance_end import everything_ends


def main() -> int:
    """Run until TERM or INT; return 1 if another one has this runtime directory."""
    begun = hub_start.begin(FORWARD)
    if begun is None:
        return 1
    claim = NamespaceClaim(CLAIM)  # so that no program that starts meanwhile takes our rules for leftovers
    paths, log = begun.paths, begun.log
    end = begun.ends_after(lambda fault: log.error("forward-crashed", exc_info=fault))
    forwarder = Forwarder(paths, log, KernelTables(), on_fault=end)
    begun.apply_accepted(forwarder)
    control = begun.answer(ForwardCommands(paths, forwarder), for_readers=FOR_READERS)
    begun.stop.wait()
    control.close()
    forwarder.close()
    if not begun.faults and (everything_ends(paths) or _has_nothing_to_do(paths, forwarder)):
        begun.stop.clear()  # a second signal ends the drain
        forwarder.drain(
            forwarder.snapshot.drain if forwarder.snapshot else 0.0,
            cut=lambda: begun.stop.is_set() or _is_wanted_again(paths),
        )
        if not _is_wanted_again(paths):
            forwarder.remove()
    forwarder.log.info("stopped")
    claim.close()
    return begun.end()


def _has_nothing_to_do(paths: Paths, forwarder: Forwarder) -> bool:
    """Return whether the accepted snapshot, which may be newer than ours, forwards nothing."""
    wanted = snapshots.readable(paths.accepted) or forwarder.snapshot
    return wanted is not None and not wanted.forwarded


def _is_wanted_again(paths: Paths) -> bool:
    """Return whether a reload while we drain forwards frontends again: then our successor continues."""
    accepted = snapshots.readable(paths.accepted)
    return accepted is not None and bool(accepted.forwarded) and not everything_ends(paths)


if __name__ == "__main__":
    sys.exit(main())
