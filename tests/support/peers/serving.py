"""A server of one directory and one port: it serves inside a context, and its log says why it did not."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from support.network.ports import accepts
from support.processes.processes import running
from support.processes.waiting import wait_until
from support.run import tools

ENGLISH: Final = {**os.environ, "LC_ALL": "C"}


@contextlib.contextmanager
def serving(command: Sequence[str], port: int, directory: str) -> Iterator[None]:
    """Run a server until the end of the context; it accepts when this yields."""
    program, *rest = command
    log = Path(directory) / "log"
    with running([tools.path(program) or program, *rest], log=log, environment=ENGLISH) as process:
        wait_until(lambda: accepts(port) or process.poll() is not None, what=program, timeout=60)
        assert process.poll() is None, log.read_text(errors="replace")
        yield
