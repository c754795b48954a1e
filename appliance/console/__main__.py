"""`python -m appliance.console`, and the script `appliance`: runs a command, or completes one for a shell."""

import os

from appliance.console.command import main

_COMPLETE = "_APPLIANCE_COMPLETE"


def run() -> None:
    """Run the command line of this process; if a shell asks for completion, answer it."""
    if _COMPLETE in os.environ:
        from appliance.console.completion import shells  # noqa: PLC0415  # for shells only

        shells.register()
    main(prog_name="appliance")


if __name__ == "__main__":
    run()
