"""`python -m appliance.console`, and the script `appliance`: the command, or what a shell completes of it."""

import os

from appliance.console.command import main

_COMPLETE = "_APPLIANCE_COMPLETE"


def run() -> None:
    """Run the command line of this process; a shell that asks for completion gets our answers."""
    if _COMPLETE in os.environ:
        from appliance.console.completion import shells  # noqa: PLC0415  # for shells only

        shells.register()
    main(prog_name="appliance")


if __name__ == "__main__":
    run()
