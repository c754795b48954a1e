"""The boards of a program's workers, alive or killed: a killed one leaves its board."""

from pathlib import Path

from appliance.net.boards.board_content import content
from appliance.wire.boards import worker_board
from appliance.wire.boards.worker_board import WorkerBoard


def worker_board_paths(runtime: Path, program: str = "*") -> list[Path]:
    """Return their files, by name; by default of all programs."""
    return sorted(runtime.glob(f"worker-{program}-*-*.board"))


def worker_boards(runtime: Path, program: str = "*") -> list[WorkerBoard]:
    """Return what they have published last, in the order of their names; by default of all programs."""
    found = (content(each, worker_board.decode) for each in worker_board_paths(runtime, program))
    return [each for each in found if each is not None and program in ("*", each.program)]
