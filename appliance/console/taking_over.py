"""A start alongside a running appliance: everything that can fail is tried before the other one is asked."""

from typing import Final

from appliance import __version__
from appliance.core.programs import PROGRAMS
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.process import rehearsal
from appliance.reload import boot
from appliance.supervisor.succession import incumbent
from appliance.supervisor.succession.incumbent import Incumbent, IncumbentRefused, NoIncumbent
from appliance.wire.lines.control import AnswerProblem
from appliance.wire.lines.succession import Party

_LOADED_WITHIN: Final = 60.0  # seconds for all programs to load, on a busy machine
_END_IT: Final = "end that one, and start this one again"
_LATER: Final = "start this one again when that is over; `appliance events` says when"
_SUPERVISOR: Final = "appliance.programs.supervisor"


def ask(paths: Paths, *, instance: str) -> Incumbent:
    """Make the running appliance stand by for us, the `instance`; raises TakenError.

    Before that our configuration is checked, and each of our programs is loaded once.
    """
    start = boot.choose_beside(paths)
    problems = tuple(rehearsal.failures(_modules(start.snapshot), patience=_LOADED_WITHIN))
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
