"""File systems of a test's own: a child runs it in a mount namespace of its own, which ends with it."""

import contextlib
import ctypes
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

_CLONE_NEWNS: Final = 0x00020000
_libc: Final = ctypes.CDLL(None, use_errno=True)


def in_private_mounts(body: Callable[[], None]) -> None:
    """Run `body` in a child that may mount; fails where it fails."""
    child = os.fork()
    if child == 0:
        os._exit(_run(body))
    _, status = os.waitpid(child, 0)
    assert status == 0, "the test failed in its child: see above"


def mount(path: Path, *, size: str) -> None:
    """Mount an empty file system of this size."""
    path.mkdir(mode=0o700, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", path], check=True)


def make_read_only(path: Path) -> None:
    """Have a mounted file system take no writes."""
    subprocess.run(["mount", "-o", "remount,ro", path], check=True)


@contextlib.contextmanager
def full(path: Path) -> Iterator[None]:
    """Leave no room in a file system meanwhile."""
    ballast = path / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    yield
    ballast.unlink(missing_ok=True)


def _run(body: Callable[[], None]) -> int:
    try:
        assert _libc.unshare(_CLONE_NEWNS) == 0, os.strerror(ctypes.get_errno())
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        body()
    except BaseException:  # noqa: BLE001  # whatever it is has to reach the parent
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0
