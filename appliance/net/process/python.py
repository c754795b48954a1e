"""Command lines of our own programs: `python -Ps -m MODULE ...`.

With -P no modules are imported from the working directory: root's may belong to another user. With -s none
are imported from the user's own (~/.local): any process of our user can write there, and a program with
capabilities would import it. These are options rather than environment variables, because the operator's
commands (scripts, notify) inherit the environment, and may need such modules.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

SAFE_PATH: Final = "-Ps"


NO_USER_SITE: Final = "PYTHONNOUSERSITE"
"""The variable equivalent to -s, for `appliance run` itself; its programs do not inherit it."""


def command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of ours."""
    return [sys.executable, SAFE_PATH, "-m", module, *arguments]


def as_own_program() -> list[str] | None:
    """Return the command that starts this process as `command` does; None if it was started so."""
    if sys.flags.safe_path and sys.flags.no_user_site:
        return None
    return [sys.executable, SAFE_PATH, *sys.orig_argv[1:]]


def is_own_program(words: Sequence[str]) -> bool:
    """Return whether a command line runs a module by this interpreter as `command` does.

    The interpreter is compared by name: next to a link to it, a pyvenv.cfg could redirect imports.
    """
    return list(words[:3]) == [sys.executable, SAFE_PATH, "-m"]


def own_command() -> list[str]:
    """Return the command that starts `appliance` as this process was started, from any directory.

    Symbolic links are kept: after an update they lead to another release.
    """
    script = sys.argv[0]
    if Path(script).name == "__main__.py":
        return [sys.executable, SAFE_PATH, "-m", "appliance.console"]
    return [os.path.abspath(shutil.which(script) or script)]  # noqa: PTH100  # Path.absolute keeps `..`


def module_of(words: Sequence[str]) -> str:
    """Return MODULE of a command line `python [-Ps] -m MODULE ...`, "" for any other."""
    at = 2 if words[1:2] == [SAFE_PATH] else 1
    return words[at + 1] if words[at : at + 1] == ["-m"] and len(words) > at + 1 else ""
