"""prctl(2): what the kernel does with this process, or with its children, because we asked for it."""

import ctypes
import errno
import os
import signal
from enum import IntEnum
from typing import Final


class ProcessOption(IntEnum):
    """The options that we use, by their numbers of linux/prctl.h; the comments say what they take."""

    SET_PDEATHSIG = 1  # the signal that this process gets when its parent dies
    SET_KEEPCAPS = 8  # 1: setuid(2) from root to another user leaves the permitted capabilities
    CAPBSET_READ = 23  # a capability; 1 where the bounding set has it, EINVAL for an unknown number
    CAPBSET_DROP = 24  # a capability: no exec gives it any more, for good
    GET_SECUREBITS = 27
    SET_SECUREBITS = 28
    SET_TIMERSLACK = 29  # nanoseconds by which a timer may be late, 50,000 usually
    SET_CHILD_SUBREAPER = 36  # 1: descendants without a parent become our children, not those of process 1
    SET_NO_NEW_PRIVS = 38  # 1: no exec adds a privilege, for good, and for all descendants
    CAP_AMBIENT = 47  # what to do with the ambient set, and with which capability of it


# The library is loaded here and not where it is used: between fork and exec a child must not load anything,
# another thread of its parent may have held the loader's lock at the fork.
_LIBRARY: Final = ctypes.CDLL(None, use_errno=True)


def prctl(option: ProcessOption, argument: int, more: int = 0) -> int:
    """Return what the kernel answers; -1 is a refusal, whose reason is in `ctypes.get_errno`."""
    # prctl is variadic: a plain int would be passed as 32 bits, and the kernel reads unsigned longs.
    words = (ctypes.c_ulong(each) for each in (argument, more, 0, 0))
    return int(_LIBRARY.prctl(int(option), *words))


def die_with(parent: int, number: signal.Signals) -> None:
    """Have this process get a signal when `parent`, its parent, dies; to be called in a child, before exec.

    "Parent" is the thread that forked (PR_SET_PDEATHSIG of prctl(2)): it has to live as long as its process.
    A change of user resets this, so it comes after one. Raises ProcessLookupError where the parent died
    before the kernel knew what to do then.
    """
    prctl(ProcessOption.SET_PDEATHSIG, number)
    if os.getppid() != parent:
        raise ProcessLookupError(errno.ESRCH, "the parent has gone")
