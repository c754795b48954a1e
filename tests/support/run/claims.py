"""What a test of a layer does not do: `pure` opens no socket, and neither it nor `sockets` starts a process.

A test that needs more than its layer has belongs to another one: whoever runs `make check`, or has no right
to start programs, relies on it.
"""

import os
import socket
import subprocess
from collections.abc import Callable
from typing import Final

import pytest

_Forbidden = tuple[tuple[object, str], ...]

_PROCESSES: Final[_Forbidden] = ((subprocess.Popen, "__init__"), (os, "fork"), (os, "posix_spawn"))
_SOCKETS: Final[_Forbidden] = ((socket.socket, "__init__"),)
_FORBIDDEN: Final[dict[str, _Forbidden]] = {"pure": _PROCESSES + _SOCKETS, "sockets": _PROCESSES}


class BrokenClaimError(Exception):
    """A test does what its layer has not."""


class Claims:
    """The claim of the layer whose test runs."""

    def __init__(self) -> None:
        self._patch = pytest.MonkeyPatch()

    def hold(self, layer: str) -> None:
        """Have whatever this layer does not do raise BrokenClaimError, until the next layer's claim."""
        self._patch.undo()
        for owner, name in _FORBIDDEN.get(layer, ()):
            self._patch.setattr(owner, name, _refusal(layer, owner, name))


def _refusal(layer: str, owner: object, name: str) -> Callable[..., None]:
    what = owner.__name__ if isinstance(owner, type) else name

    def refuse(*_: object, **__: object) -> None:
        raise BrokenClaimError(f"a test of the layer `{layer}` calls {what}: give it another marker")

    return refuse
