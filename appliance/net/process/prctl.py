"""prctl(2): requests to the kernel for this process or its children."""

import ctypes
import errno
import os
import signal
from enum import IntEnum
from typing import Final


class ProcessOption(IntEnum):
    """The options used, by their numbers in linux/prctl.h; the comments describe their arguments."""

    SET_PDEATHSIG = 1  # the signal that this process gets when its parent dies
    SET_DUMPABLE = 4  # 1: others of this user see it whole in /proc, as after an exec; a setuid(2) ends that
    SET_KEEPCAPS = 8  # 1: setuid(2) from root to another user leaves the permitted capabilities
    CAPBSET_READ = 23  # a capability; 1 where the bounding set has it, EINVAL for an unknown number
    CAPBSET_DROP = 24  # a capability: no exec can give it again
    GET_SECUREBITS = 27
    SET_SECUREBITS = 28
    SET_TIMERSLACK = 29  # nanoseconds by which a timer may be late, 50,000 usually
    SET_CHILD_SUBREAPER = 36  # 1: descendants without a parent become our children, not those of process 1
    SET_NO_NEW_PRIVS = 38  # 1: no exec adds a privilege, permanently, for all descendants
    CAP_AMBIENT = 47  # what to do with the ambient set, and with which capability of it


# The library is loaded here because a child must not load anything between fork and exec: another thread of
# its parent may have held the loader's lock at the fork.
_LIBRARY: Final = ctypes.CDLL(None, use_errno=True)


def prctl(option: ProcessOption, argument: int, more: int = 0) -> int:
    """Return the kernel's answer; -1 is a refusal, with the reason in `ctypes.get_errno`."""
    # prctl is variadic: a plain int would be passed as 32 bits, and the kernel reads unsigned longs.
    words = (ctypes.c_ulong(each) for each in (argument, more, 0, 0))
    return int(_LIBRARY.prctl(int(option), *words))


def die_with(parent: int, number: signal.Signals) -> None:
    """Make the kernel signal this process when `parent` dies; called in a child, before exec.

    "Parent" is the thread that forked (PR_SET_PDEATHSIG of prctl(2)): it must live as long as its process. A
    change of user resets this, so call it after one. Raises ProcessLookupError if the parent died before the
    setting took effect.
    """
    prctl(ProcessOption.SET_PDEATHSIG, number)
    if os.getppid() != parent:
        raise ProcessLookupError(errno.ESRCH, "the parent has gone")
