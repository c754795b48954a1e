"""The program `redirect`: redirects connections for another program's port here, with kernel rules.

On a master of a cluster the API server itself listens on 6443. nftables rules like those of OpenShift's
monitor redirect connections to a virtual IP and that port to our frontend on 9445. They exist while the
frontend can serve, and no longer than this program: the kernel removes them with its process. It stops after
the proxies, which make it withdraw their rules before they stop accepting.
"""

import sys

from appliance.model.program_names import REDIRECT
from appliance.net.starting import hub_start
from appliance.net.supervision.appliance_end import everything_ends
from appliance.redirect.commands import RedirectCommands
from appliance.redirect.kernel_rules import KernelRules
from appliance.redirect.redirector import Redirector


def main() -> int:
    """Run until TERM or INT; return 1 if another one has this runtime directory."""
    begun = hub_start.begin(REDIRECT)
    if begun is None:
        return 1
    paths, log = begun.paths, begun.log
    end = begun.ends_after(lambda fault: log.error("redirect-crashed", exc_info=fault))
    redirector = Redirector(paths, log, KernelRules(log), on_fault=end)
    begun.apply_accepted(redirector)
    control = begun.answer(RedirectCommands(paths, redirector))
    begun.stop.wait()
    control.close()
    redirector.close(keep_flows=bool(begun.faults) or not everything_ends(paths))
    return begun.end()


if __name__ == "__main__":
    sys.exit(main())
