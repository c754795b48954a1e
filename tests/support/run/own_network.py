"""A network of its own for the process that runs tests, so that no other program is met on loopback.

Tests run side by side, and other programs of the machine use its loopback: a port that was free a moment ago
is taken, a connection reaches a stranger. A network namespace with nothing but `lo` ends both. Only the
calling thread moves; threads and processes that it starts later are where it was then.
"""

import ctypes
import os
import subprocess
from pathlib import Path
from typing import Final

from support.run import tools

_CLONE_NEWNET: Final = 0x40000000
_HERE: Final = Path("/proc/thread-self/ns/net")


class OwnNetwork:
    """The machine's network and one of our own; `enter` and `leave` may be called as often as one likes."""

    def __init__(self) -> None:
        self._machine = os.open(_HERE, os.O_RDONLY | os.O_CLOEXEC)
        self._own = self._make()

    @classmethod
    def possible(cls) -> bool:
        """Return whether this process may make one: it needs root and the program `ip`."""
        return tools.is_root() and tools.path("ip") is not None

    def enter(self) -> None:
        """Go to the network that only we are in."""
        _call("setns", self._own, _CLONE_NEWNET)

    def leave(self) -> None:
        """Go back to the machine's network, which reaches package registries."""
        _call("setns", self._machine, _CLONE_NEWNET)

    def _make(self) -> int:
        _call("unshare", _CLONE_NEWNET)
        try:
            subprocess.run([tools.path("ip") or "ip", "link", "set", "lo", "up"], check=True)
            return os.open(_HERE, os.O_RDONLY | os.O_CLOEXEC)
        finally:
            self.leave()


def _call(function: str, *arguments: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, function)(*arguments):
        raise OSError(ctypes.get_errno(), function)
