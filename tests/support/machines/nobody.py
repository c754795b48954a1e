"""Runs a command as an ordinary user who can reach this Python and this checkout, wherever they lie.

An interpreter below root's own directory is out of an ordinary user's reach. In a mount namespace of the
command's own, each directory in the way is covered by an open one that holds only what is needed.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Final

UID: Final = 65534
_SETPRIV: Final = f"setpriv --reuid={UID} --regid={UID} --inh-caps=-all --no-new-privs"
_UNSHARE: Final = ("unshare", "--mount", "--propagation", "private")
_CHECKOUT: Final = Path(__file__).resolve().parents[3]


def possible() -> bool:
    """Return whether this machine lets us make a mount namespace and change the user."""
    return subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False).returncode == 0


def command(words: Sequence[str], *, groups: Sequence[int] = ()) -> list[str]:
    """Return the command that runs `words` as the user `nobody`, a member of these groups besides."""
    member = f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups"
    return [*reachable(f'set -- {_SETPRIV} {member} "$@"'), *words]


def reachable(*first: str) -> list[str]:
    """Return what runs a command where ordinary users can reach this Python; `first` are lines of a shell."""
    needed = sorted({Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), _CHECKOUT})
    closed = {path: _closed(path) for path in needed}
    inside = [path for path in needed if closed[path] is not None]
    lines = ["set -e", "mount -t tmpfs -o mode=755 keep /mnt"]
    for number, path in enumerate(inside):
        lines += [f"mkdir /mnt/{number}", f"mount --bind {quote(str(path))} /mnt/{number}"]
    lines += [f"mount -t tmpfs -o mode=755 open {quote(str(each))}" for each in sorted(_tops(closed))]
    for number, path in enumerate(inside):
        lines += [f"mkdir -p {quote(str(path))}", f"mount --bind /mnt/{number} {quote(str(path))}"]
    lines += [*first, 'exec "$@"']
    return [*_UNSHARE, "sh", "-c", "\n".join(lines), "sh"]


def _closed(path: Path) -> Path | None:
    """Return the first directory on the way that others may not enter."""
    return next((each for each in reversed(path.parents) if not each.stat().st_mode & 0o001), None)


def _tops(closed: dict[Path, Path | None]) -> set[Path]:
    return {each for each in closed.values() if each is not None}
