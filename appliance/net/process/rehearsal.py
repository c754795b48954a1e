"""A trial of programs before anything depends on them: each module is imported once, in its own process.

A broken release (a missing library, another interpreter, a compiled module of another machine) fails here,
while the former one still does all the work.
"""

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Final

from appliance.net.process.python import SAFE_PATH

_LAST: Final = 2000
"""Most bytes of error output, whose last line is the reason."""

_IMPORT: Final = """
import importlib, importlib.util, sys
is_package = importlib.util.find_spec(sys.argv[1]).submodule_search_locations
importlib.import_module(sys.argv[1] + (".__main__" if is_package else ""))
"""
"""The module that `python -m` runs is imported: for a package that is another one."""


def failures(modules: Iterable[str], *, patience: float) -> Iterator[str]:
    """Yield why modules cannot be imported, for each that cannot; `patience` is seconds for all of them."""
    started = {module: _start(module) for module in modules}
    until = time.monotonic() + patience
    for module, process in started.items():
        try:
            _, complaint = process.communicate(timeout=max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            yield f"{module}: not loaded after {patience:g} s"
            continue
        if process.returncode:
            words = complaint[-_LAST:].decode(errors="replace").strip().splitlines()
            yield f"{module}: {words[-1] if words else f'ended with {process.returncode}'}"


def _start(module: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, SAFE_PATH, "-c", _IMPORT, module]
    return subprocess.Popen(  # noqa: S603  # the command is ours
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
