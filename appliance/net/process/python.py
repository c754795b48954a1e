"""Command lines of our own programs: `python -Ps -m MODULE ...`.

With -P the working directory is no place for modules: root may stand in a directory of somebody else's. With
-s neither is the user's own (~/.local): whatever runs as our user can write there, and a program with
capabilities would import it. These are options and no settings of the environment, because commands of the
operator (scripts, notify) inherit that, and may well import what lies there.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

SAFE_PATH: Final = "-Ps"


NO_USER_SITE: Final = "PYTHONNOUSERSITE"
"""The variable that is -s for `appliance run` itself, which others start; its programs do not inherit it."""


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of ours."""
    return [sys.executable, SAFE_PATH, "-m", module, *arguments]


def is_own_program(words: Sequence[str]) -> bool:
    """Return whether a command line runs a module by this interpreter as `command` does.

    The interpreter is compared by its name: beside a link to it somebody could put a pyvenv.cfg, which says
    where modules are.
    """
    return list(words[:3]) == [sys.executable, SAFE_PATH, "-m"]


def own_command() -> list[str]:
    """Return the command that starts `appliance` as this process was started, whatever the directory is.

    Symbolic links are kept: what they lead to is another release after an update.
    """
    script = sys.argv[0]
    if Path(script).name == "__main__.py":
        return [sys.executable, SAFE_PATH, "-m", "appliance.console"]
    return [os.path.abspath(shutil.which(script) or script)]  # noqa: PTH100  # Path.absolute keeps `..`


def module_of(words: Sequence[str]) -> str:
    """Return MODULE of a command line `python [-Ps] -m MODULE ...`, "" for any other."""
    at = 2 if words[1:2] == [SAFE_PATH] else 1
    return words[at + 1] if words[at : at + 1] == ["-m"] and len(words) > at + 1 else ""
