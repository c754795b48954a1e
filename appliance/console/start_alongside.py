"""A start alongside a running appliance: everything that can fail is tried before the other one is asked."""

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Final

from appliance import __version__
from appliance.core.program_table import PROGRAMS
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.process.python import SAFE_PATH
from appliance.reload import boot
from appliance.supervisor.succession import incumbent
from appliance.supervisor.succession.incumbent import Incumbent, IncumbentRefused, NoIncumbent
from appliance.wire.lines.control import AnswerProblem
from appliance.wire.lines.succession import Party

_LAST: Final = 2000
"""Most bytes of error output, whose last line is the reason."""

_IMPORT: Final = """
import importlib, importlib.util, sys
is_package = importlib.util.find_spec(sys.argv[1]).submodule_search_locations
importlib.import_module(sys.argv[1] + (".__main__" if is_package else ""))
"""
"""The module that `python -m` runs is imported: for a package that is another one."""


def failures(modules: Iterable[str], *, patience: float) -> Iterator[str]:
    """Yield why modules cannot be imported, for each that cannot; `patience` is seconds for all of them.

    Each is imported once, in its own process, before anything depends on it: a broken release (a missing
    library, another interpreter, a compiled module of another machine) fails here, while the former one still
    does all the work.
    """
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


_LOADED_WITHIN: Final = 60.0  # seconds for all programs to load, on a busy machine
_END_IT: Final = "end that one, and start this one again"
_LATER: Final = "start this one again after the upgrade; `appliance events` shows when it ends"
_SUPERVISOR: Final = "appliance.programs.supervisor"


def ask(paths: Paths, *, instance: str) -> Incumbent:
    """Make the running appliance stand by for us, the `instance`; raises TakenError.

    Before that our configuration is checked, and each of our programs is loaded once.
    """
    start = boot.choose_beside(paths)
    problems = tuple(failures(_modules(start.snapshot), patience=_LOADED_WITHIN))
    if problems:
        words = (AnswerProblem(message=f"cannot take over: {each}") for each in problems)
        raise boot.TakenError(*words, step="install this release again; the running one continues")
    try:
        return incumbent.ask(paths.succession_socket, Party(version=__version__, instance=instance))
    except NoIncumbent as error:
        taken = f"{paths.runtime}: an appliance runs here already, and does not answer: {error}"
        raise boot.TakenError(AnswerProblem(message=taken), step=_END_IT) from error
    except IncumbentRefused as error:
        refused = f"{paths.runtime}: an appliance runs here already, and does not make way: {error}"
        raise boot.TakenError(AnswerProblem(message=refused), step=_LATER) from error


def _modules(snapshot: Snapshot) -> tuple[str, ...]:
    """Return every module that runs as a process with a configuration."""
    used = [each for each in PROGRAMS if each.needed(snapshot)]
    modules = (name for each in used for name in (each.module, *(child.module for child in each.children)))
    return tuple(dict.fromkeys((_SUPERVISOR, *modules)))
