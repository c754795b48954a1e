"""The real proxy master with short timeouts, and workers that fail when told (`programs.faulty_worker`).

It waits long for sessions that move, so that a test can hold them up. A second argument is JSON: fields of
`Timing` that are to be otherwise.
"""

import json
import os
import sys

from appliance.core.rollout.timing import Timing
from appliance.model.paths import Paths
from appliance.programs import proxy
from appliance.proxy import orphaned_workers

KILL_GRACE = 1.0

if __name__ == "__main__":
    orphaned_workers.adopt_all.__kwdefaults__["timeout"] = 2.0
    proxy._LEAVE_TIMEOUT = 5.0
    timing = {"startup": 10.0, "accept": 10.0, "move": 60.0, "kill_grace": KILL_GRACE, "silence": 3.0}
    sys.exit(
        proxy.run(
            sys.argv[1],
            Paths.from_environment(os.environ),
            module=("-m", "support.worker.faulty_worker"),
            timing=Timing(**{**timing, **json.loads(sys.argv[2])}),
        )
    )
