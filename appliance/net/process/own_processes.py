"""The programs of one runtime directory in /proc, including those without a socket."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from appliance.model.paths import RUNTIME_VARIABLE

_MOST_OPTIONS: Final = 4
"""Options of the interpreter that may precede `-m`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnProcess:
    """A process `python -m MODULE ARGUMENTS`."""

    pid: int
    module: str
    arguments: tuple[str, ...]


def own_processes(runtime: Path) -> Iterator[OwnProcess]:
    """Yield every Python program started for this runtime directory except this one."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # another user's, or gone by now
            found = _read(process)
            if found is not None and found.pid != os.getpid() and _lives_in(process, runtime):
                yield found


def _read(process: Path) -> OwnProcess | None:
    words = (process / "cmdline").read_bytes().removesuffix(b"\0").split(b"\0")
    if b"-m" not in words[: _MOST_OPTIONS + 2]:
        return None
    module, *arguments = map(os.fsdecode, words[words.index(b"-m") + 1 :] or [b""])
    return OwnProcess(pid=int(process.name), module=module, arguments=tuple(arguments))


def _lives_in(process: Path, runtime: Path) -> bool:
    """Return whether a process has this directory, not only its name: containers have the same."""
    name = os.fsencode(f"{RUNTIME_VARIABLE}=")
    for setting in (process / "environ").read_bytes().split(b"\0"):
        if setting.startswith(name):
            place = os.fsdecode(setting.removeprefix(name))
            root = process / "root" if place.startswith("/") else process / "cwd"
            return Path(f"{root}/{place}").samefile(runtime)
    return False
