"""What a kubelet does for one container of a static pod: starts it again when it has ended, after a pause."""

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from support.network.namespaces import Node
from support.processes.log_lines import logged
from support.processes.processes import end

_TESTS: Final = Path(__file__).parents[2]
_LOOK: Final = 0.05


class Kubelet:
    """Keeps a module of the tests running on a node; `ends` are the exit statuses that it has seen."""

    def __init__(self, node: Node, module: str, arguments: Sequence[str], *, log: Path, pause: float) -> None:
        self.ends: list[int] = []
        self._node = node
        self._command = [sys.executable, "-m", module, *arguments]
        self._log = log
        self._pause = pause
        self._over = threading.Event()
        self._process = self._start()
        self._thread = threading.Thread(target=self._keep)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        end(self._process, patience=10.0)

    def events(self, name: str) -> list[dict[str, object]]:
        """Return what the container has logged under that name, in all its runs."""
        return logged(self._log, name)

    def _start(self) -> "subprocess.Popen[bytes]":
        with self._log.open("ab") as log:
            environment = {**os.environ, "PYTHONPATH": str(_TESTS)}
            return self._node.start(self._command, output=log, environment=environment)

    def _keep(self) -> None:
        while not self._over.wait(_LOOK):
            status = self._process.poll()
            if status is not None:
                self.ends.append(status)
                if self._over.wait(self._pause):
                    return
                self._process = self._start()
