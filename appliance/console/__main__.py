"""`python -m appliance.console`, and the script `appliance`: runs a command, or completes one for a shell."""

import os
import sys

from appliance.net.process import python

_COMPLETE = "_APPLIANCE_COMPLETE"


def run() -> None:
    """Run the command line of this process; if a shell asks for completion, answer it."""
    # What becomes supervisord has to be started as programs are; before any import that costs.
    if "run" in sys.argv[1:] and (command := python.as_own_program()):
        os.execv(command[0], command)  # noqa: S606  # no shell is the point
    from appliance.console.command import main  # noqa: PLC0415  # after that

    if _COMPLETE in os.environ:
        from appliance.console.completion import shells  # noqa: PLC0415  # for shells only

        shells.register()
    main(prog_name="appliance")


if __name__ == "__main__":
    run()
