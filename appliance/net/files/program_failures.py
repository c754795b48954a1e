"""Files with the reason why a program could not start: written by it, read by `appliance status`.

Such a program has exited and cannot be asked; supervisord has only the last line that it wrote. The file
exists only while the failure lasts.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from appliance.model.paths import Paths
from appliance.net.files import readers, state_files
from appliance.net.files.atomic_write import write_whole
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
    """Return the file with the reason why a program could not start."""
    return paths.runtime / f"{program}{_SUFFIX}"


def write(paths: Paths, program: str, failure: ProgramFailure) -> None:
    """Write the failure of a program for readers; without room on the disk there is no file."""
    path = failure_file(paths, program)
    state_files.clear_way(path)
    with contextlib.suppress(OSError):
        write_whole(path, msgspec.json.encode(failure), mode=readers.file_mode(path.parent))


def remove(paths: Paths, program: str) -> None:
    """Remove the failure of an earlier start."""
    path = failure_file(paths, program)
    state_files.clear_way(path)
    with contextlib.suppress(OSError):
        path.unlink()


def read_all(runtime: Path) -> Iterator[tuple[str, ProgramFailure]]:
    """Yield each program that failed to start, with its failure; damaged files are skipped."""
    for path in sorted(runtime.glob(f"*{_SUFFIX}")):
        failure = state_files.decoded(path, ProgramFailure)
        if failure is not None:
            yield path.name.removesuffix(_SUFFIX), failure
