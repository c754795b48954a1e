"""The program `redirect`: leads connections for another program's port here, by rules of the kernel.

On a master of a cluster the API server listens on 6443 itself. Connections to a virtual IP and that port come
to our frontend on 9445 by rules of nftables, as OpenShift's monitor makes them. They are there while the
frontend can serve, and not longer than this program lives: the kernel removes them with its process.
Stopping, it goes after the proxies, which have had it withdraw their rules before they stopped to accept.
"""

import sys

from appliance.model.program_names import REDIRECT
from appliance.net.files import snapshots
from appliance.net.starting import hub_start
from appliance.net.supervision.appliance_end import everything_ends
from appliance.redirect.commands import FOR_READERS, RedirectCommands
from appliance.redirect.kernel_rules import KernelRules
from appliance.redirect.redirector import Redirector


def main() -> int:
    """Run until TERM or INT; 1 when another one has this runtime directory."""
    begun = hub_start.begin(REDIRECT)
    if begun is None:
        return 1
    paths, log, stop = begun.paths, begun.log, begun.stop
    faults: list[BaseException | None] = []

    def end(fault: BaseException | None) -> None:
        redirector.log.error("redirect-crashed", exc_info=fault)
        faults.append(fault)
        stop.set()

    redirector = Redirector(paths, log, KernelRules(log), on_fault=end)
    accepted = snapshots.accepted(paths, log)
    if accepted is not None:
        redirector.apply(accepted)
    control = begun.answer(RedirectCommands(paths, redirector).handlers(), for_readers=FOR_READERS)
    stop.wait()
    control.close()
    redirector.close(keep_flows=bool(faults) or not everything_ends(paths))
    begun.heartbeat.close()
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
