"""Whether this machine has what virtual routers need of it. May wait for a file system."""

import os
import shutil
import socket
from pathlib import Path

from appliance.model.machine_needs import Need, NeedKind
from appliance.net.tracking.command_path import COMMAND_PATH


def objection(need: Need) -> str | None:
    """Return what is wrong with a need on this machine, None for nothing."""
    return _no_interface(need.name) if need.kind is NeedKind.INTERFACE else _no_command(need.name)


def _no_interface(name: str) -> str | None:
    there = sorted(each for _, each in socket.if_nameindex())
    return None if name in there else f"there is no interface `{name}` here, but {', '.join(there)}"


def _no_command(name: str) -> str | None:
    if "/" not in name:
        found = shutil.which(name, path=COMMAND_PATH)
        return None if found else f"there is no command `{name}` in {COMMAND_PATH}"
    path = Path(name)
    if not path.exists():
        return f"`{name}` does not exist here"
    if not path.is_file() or not os.access(path, os.X_OK):
        return f"`{name}` is no executable file"
    return None
