"""The command line and environment that /proc, and so `ps`, shows of this process (proc_pid_cmdline(5)).

A process that continues as another program without an exec would keep those with which it began, and nobody
would find it by its module and runtime directory. The kernel lets every process move its own (PR_SET_MM_MAP
of prctl(2)), if it was built with CONFIG_CHECKPOINT_RESTORE, as those of the distributions are.
"""

import ctypes
import errno
import mmap
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

_STAT: Final = Path("/proc/self/stat")
_COMMAND: Final = Path("/proc/self/cmdline")
_ENVIRONMENT: Final = Path("/proc/self/environ")
_SET_MM: Final = 35  # linux/prctl.h, as is the next one
_SET_MM_MAP: Final = 14
_UNCHANGED: Final = 2**32 - 1  # of the executable

# The places of these in proc_pid_stat(5), counted from the third field on, which follows the name.
_PLACES: Final = {
    "start_code": 23,
    "end_code": 24,
    "start_data": 42,
    "end_data": 43,
    "start_brk": 44,
    "start_stack": 25,
}
_LIBRARY: Final = ctypes.CDLL(None, use_errno=True)
_LIBRARY.sbrk.restype = ctypes.c_void_p
_LIBRARY.sbrk.argtypes = (ctypes.c_ssize_t,)


class _Map(ctypes.Structure):
    """`struct prctl_mm_map` of linux/prctl.h."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("start_code", "end_code", "start_data", "end_data")),
        *((name, ctypes.c_uint64) for name in ("start_brk", "brk", "start_stack", "arg_start", "arg_end")),
        *((name, ctypes.c_uint64) for name in ("env_start", "env_end", "auxv")),
        ("auxv_size", ctypes.c_uint32),
        ("exe_fd", ctypes.c_uint32),
    )


_shown: list[mmap.mmap] = []  # the kernel reads it for each `ps`


def show(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Show these from now on; raises OSError where the kernel does not let us."""
    _show(map(os.fsencode, words), (os.fsencode(f"{name}={value}") for name, value in environment.items()))


def _show(words: Iterable[bytes], settings: Iterable[bytes]) -> None:
    command, environment = (b"".join(each + b"\0" for each in texts) for texts in (words, settings))
    # Private memory: the kernel shows no other.
    room = mmap.mmap(-1, len(command + environment), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    room.write(command + environment)
    start = ctypes.addressof(ctypes.c_char.from_buffer(room))
    fields = _STAT.read_bytes().rpartition(b")")[2].split()
    if len(fields) <= max(_PLACES.values()):  # an emulator of processors has one of its own
        raise OSError(errno.ENOTSUP, f"no other command line: {_STAT} has {len(fields)} fields")
    places = _Map(
        **{name: int(fields[at]) for name, at in _PLACES.items()},
        brk=_LIBRARY.sbrk(0),
        arg_start=start,
        arg_end=start + len(command),
        env_start=start + len(command),
        env_end=start + len(command + environment),
        exe_fd=_UNCHANGED,
    )
    # Variadic: a plain int would be passed as 32 bits, and the kernel reads unsigned longs.
    given = (
        ctypes.c_ulong(each) for each in (_SET_MM_MAP, ctypes.addressof(places), ctypes.sizeof(places), 0)
    )
    if _LIBRARY.prctl(_SET_MM, *given):
        number = ctypes.get_errno()
        raise OSError(number, f"no other command line: {os.strerror(number)}")
    _shown[:] = [room]


def can_be_shown() -> bool:
    """Return whether `show` works here: it has shown the present ones again."""
    try:
        _show(*(each.read_bytes().removesuffix(b"\0").split(b"\0") for each in (_COMMAND, _ENVIRONMENT)))
    except OSError:
        return False
    return True
