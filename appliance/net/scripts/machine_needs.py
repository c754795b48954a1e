"""Whether this machine meets the needs of virtual routers. May wait for a file system."""

import errno
import shutil
import socket
import stat
from pathlib import Path
from typing import Final

from appliance.model.rules.machine_needs import MachineNeed, MachineNeedKind
from appliance.net.scripts.command_path import COMMAND_PATH

_EXECUTABLE: Final = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


def objection(need: MachineNeed) -> str | None:
    """Return what this machine lacks for a need, None if nothing."""
    return _no_interface(need.name) if need.kind is MachineNeedKind.INTERFACE else _no_command(need.name)


def _no_interface(name: str) -> str | None:
    there = sorted(each for _, each in socket.if_nameindex())
    return None if name in there else f"there is no interface `{name}` here, but {', '.join(there)}"


def _no_command(name: str) -> str | None:
    if "/" not in name:
        found = shutil.which(name, path=COMMAND_PATH)
        return None if found else f"there is no command `{name}` in {COMMAND_PATH}"
    try:
        mode = Path(name).stat().st_mode
    except PermissionError:
        return None  # the script's `user` is often another, with access
    except OSError as error:
        missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
        return f"`{name}` does not exist here" if missing else f"`{name}`: {error.strerror}"
    # Executable for any user, for the same reason.
    return None if stat.S_ISREG(mode) and mode & _EXECUTABLE else f"`{name}` is no executable file"
