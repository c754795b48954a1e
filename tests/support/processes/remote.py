"""A Python program of our own that a test steers: JSON lines in on its stdin, JSON lines out on its stdout.

Load and backends run as processes of their own, so that the interpreter lock of the test (or a busy test) is
never what limits them. One whose test dies sees the end of its stdin and exits.
"""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Self

from support.processes.processes import end

Values = dict[str, "str | int | float | bool | list[object] | dict[str, object] | None"]


class Remote:
    """A running program; `started` is the object that it printed first. Use it as a context manager."""

    def __init__(self, module: str, *arguments: str) -> None:
        tests = Path(__file__).parents[2]
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=tests,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.pid = self._process.pid
        self.started = self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, command: str, **values: object) -> Values:
        """Send one command and return its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"command": command, **values}).encode() + b"\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        """End the program."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        end(self._process)

    def _read(self) -> Values:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"{self._process.args} ended with status {self._process.wait()}"
        answer: Values = json.loads(line)
        return answer
