"""Files that say why a program could not start: written by the program, read by `appliance status`.

Such a program has ended, so nobody can ask it; supervisord knows no more than the last line that it wrote.
The file is there only while the failure lasts.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from appliance.model.paths import Paths
from appliance.net.files import readers, state_files
from appliance.net.files.atomic_write import write_atomically
from appliance.wire.lines.control import AnswerProblem

_SUFFIX: Final = ".failure.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramFailure:
    """Why the accepted configuration does not run as it should; `since` is Unix seconds."""

    since: float
    problems: tuple[AnswerProblem, ...]

    @property
    def reason(self) -> str:
        """All problems in one line."""
        return "; ".join(problem.message for problem in self.problems)


def failure_file(paths: Paths, program: str) -> Path:
    """Return the file that says why a program could not start."""
    return paths.runtime / f"{program}{_SUFFIX}"


def write(paths: Paths, program: str, failure: ProgramFailure) -> None:
    """Leave the failure of a program for readers; without room on the disk there will be no file."""
    path = failure_file(paths, program)
    state_files.clear_way(path)
    with contextlib.suppress(OSError):
        write_atomically(path, msgspec.json.encode(failure), mode=readers.file_mode(path.parent))


def remove(paths: Paths, program: str) -> None:
    """Remove what an earlier start left to say why it failed."""
    path = failure_file(paths, program)
    state_files.clear_way(path)
    with contextlib.suppress(OSError):
        path.unlink()


def read_all(runtime: Path) -> Iterator[tuple[str, ProgramFailure]]:
    """Yield each program that failed to start, with its failure; a damaged file is passed over."""
    for path in sorted(runtime.glob(f"*{_SUFFIX}")):
        failure = state_files.decoded(path, ProgramFailure)
        if failure is not None:
            yield path.name.removesuffix(_SUFFIX), failure
