"""The real proxy master with short timeouts, and workers that fail when told (`programs.faulty_worker`).

It waits long for sessions that move, so that a test can hold them up.
"""

import os
import sys

from appliance.core.rollout.timing import Timing
from appliance.model.paths import Paths
from appliance.programs import proxy

if __name__ == "__main__":
    sys.exit(
        proxy.run(
            sys.argv[1],
            Paths.from_environment(os.environ),
            module=("-m", "support.worker.faulty_worker"),
            timing=Timing(startup=10.0, accept=10.0, move=60.0, kill_grace=1.0, silence=3.0),
        )
    )
