"""Clients of a greeter at a steady rate, and what they were answered."""

import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from support.network import greeted
from support.network.namespaces import Node
from support.processes.processes import end
from support.processes.waiting import wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What clients were answered, oldest first: names, or errors that begin with `!`."""

    words: tuple[str, ...]

    @property
    def errors(self) -> dict[str, int]:
        """How many of each error there were."""
        return dict(Counter(each for each in self.words if each.startswith("!")))

    @property
    def names(self) -> dict[str, int]:
        """How many were answered by whom."""
        return dict(Counter(each for each in self.words if not each.startswith("!")))


class GreetedClients:
    """Clients that connect at a steady rate, until `stop`."""

    def __init__(self, node: Node, address: str, port: int, *, rate: int) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # closed at the end of the context
        command = [sys.executable, str(Path(greeted.__file__)), address, str(port), str(rate)]
        self._process = node.start(command, output=self._output)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end(self._process)
        self._output.close()

    def so_far(self) -> tuple[str, ...]:
        """Return the answers that have come: names, or errors that begin with `!`."""
        self._output.flush()
        text = Path(f"/proc/self/fd/{self._output.fileno()}").read_bytes().decode()
        return tuple(line.partition(" ")[2] for line in text.splitlines() if " " in line)

    def wait_for(self, name: str, *, more: int = 50) -> None:
        """Wait until so many further connections have been answered by this name."""
        before = self.so_far().count(name)
        wait_until(lambda: self.so_far().count(name) >= before + more, what=f"{name} answers", timeout=30.0)

    def wait_for_more(self, count: int) -> None:
        """Wait for so many further answers."""
        before = len(self.so_far())
        wait_until(lambda: len(self.so_far()) >= before + count, what=f"{count} answers", timeout=60.0)

    def stop(self) -> Answers:
        """End, and return what was answered."""
        end(self._process)
        return Answers(words=self.so_far())
