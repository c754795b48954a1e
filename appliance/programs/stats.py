"""The program `stats`: shows the appliance's state to Prometheus, to HAProxy's clients, and to people.

It reads boards and asks the other programs, and no program waits for it: killed, hanging or overloaded, it
costs no connection. It changes nothing itself; it passes an operator's requests to the program concerned.
"""

import gc
import sys
import time
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.model.program_names import STATS
from appliance.net.files import program_failures, snapshots
from appliance.net.files.program_failures import ProgramFailure
from appliance.net.starting import hub_start
from appliance.stats.commands import StatsCommands
from appliance.stats.service import StatsRefused, StatsService

_COLLECT: Final = (50_000, 20, 20)  # reading a thousand servers creates thousands of values, no cycles


def main() -> int:
    """Run until TERM or INT; return 1 if the accepted configuration cannot be served: supervisord retries."""
    begun = hub_start.begin(STATS)
    if begun is None:
        return 1
    paths, log, stop = begun.paths, begun.log, begun.stop
    service = StatsService(paths, log)
    if not _serve_accepted(paths, service, log):
        return 1
    control = begun.answer(StatsCommands(paths, service))
    # Present objects stay: frozen, they are not scanned again for each thousand samples of a scrape.
    gc.freeze()
    gc.set_threshold(*_COLLECT)
    stop.wait()
    control.close()
    service.close()
    return begun.end()


def _serve_accepted(paths: Paths, service: StatsService, log: FilteringBoundLogger) -> bool:
    """Serve the accepted snapshot; if that fails, leave the reason for `status`."""
    accepted = snapshots.accepted(paths, log)
    if accepted is None:
        return True
    try:
        service.commit(service.prepare(accepted))
    except StatsRefused as error:
        log.error("start-failed", reason=str(error))  # noqa: TRY400  # the reason is the operator's, not ours
        program_failures.write(paths, STATS, ProgramFailure(since=time.time(), problems=tuple(error.reasons)))
        return False
    program_failures.remove(paths, STATS)
    log.info("started", configuration=accepted.number)
    return True


if __name__ == "__main__":
    sys.exit(main())
