"""Capabilities by program: each has those that it uses, its children none (capabilities(7)).

The whole appliance runs as one user. supervisord has the user's capabilities (from podman, systemd's
AmbientCapabilities, or `drop_privileges.become`) in its permitted set, without using them, and gives each
program its share at the exec. This uses the ambient set, the only one that an ordinary user's exec keeps:
file capabilities are ignored with no-new-privileges, and make the exec fail if one of them is not permitted.
A program does not pass its share on to its own children.

Root has all capabilities after every exec because of its number, until it gives that up (SECBIT_NOROOT): from
then on it is an ordinary user who owns root's files. Before that, and for a user without capabilities, the
functions here change nothing.
"""

import contextlib
import ctypes
import os
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from appliance.core.program_table import BY_NAME, PROGRAMS
from appliance.model.capability import Capability
from appliance.model.program_names import ANNOUNCE, VRRP
from appliance.net.process import python
from appliance.net.process.prctl import ProcessOption, prctl

_USED: Final = {each.module: each.capabilities for each in PROGRAMS}
EVERYTHING: Final = frozenset().union(*_USED.values())
"""All capabilities that the programs use."""

OTHER_USERS: Final = frozenset({Capability.CAP_SETGID, Capability.CAP_SETUID})
"""Further ones that root needs: a track's script runs as the configured `user`."""

_VERSION_3: Final = 0x20080522  # linux/capability.h
_AMBIENT_IS_SET: Final = 1  # PR_CAP_AMBIENT_IS_SET of linux/prctl.h
_AMBIENT_RAISE: Final = 2  # PR_CAP_AMBIENT_RAISE
_NO_ROOT: Final = 1  # SECBIT_NOROOT of linux/securebits.h
_NO_ROOT_FOR_GOOD: Final = 1 | 1 << 1  # and SECBIT_NOROOT_LOCKED
_LIBRARY: Final = ctypes.CDLL(None, use_errno=True)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def used_by(command: Sequence[str]) -> frozenset[Capability]:
    """Return the capabilities of a command of `python.command`; none for a program that is not ours.

    A similar command has none either: another interpreter, or other options, may run anything by that name.
    """
    if not python.is_own_program(command):
        return frozenset()
    module = python.module_of(command)
    tracks = module in {BY_NAME[VRRP].module, BY_NAME[ANNOUNCE].module}
    return _USED.get(module, frozenset()) | (OTHER_USERS if tracks else frozenset())


def is_root() -> bool:
    """Return whether every exec gives us all capabilities because our user number is 0."""
    return os.geteuid() == 0 and not prctl(ProcessOption.GET_SECUREBITS, 0) & _NO_ROOT


def renounce() -> None:
    """As root, keep only the capabilities that the programs use, permanently and across every exec.

    Raises OSError (EPERM) if root may not change that, as in a container without CAP_SETPCAP.
    """
    kept = EVERYTHING | OTHER_USERS
    bound(kept)
    _checked(prctl(ProcessOption.SET_SECUREBITS, _NO_ROOT_FOR_GOOD))
    grant(kept)


def bound(kept: Collection[Capability] = EVERYTHING) -> None:
    """Remove all others from the bounding set, which limits every exec, if permitted (CAP_SETPCAP)."""
    if not _effective() >> Capability.CAP_SETPCAP & 1:
        return
    number = 0
    while (there := prctl(ProcessOption.CAPBSET_READ, number)) >= 0:  # EINVAL after the last one
        if there and number not in kept:
            _checked(prctl(ProcessOption.CAPBSET_DROP, number))
        number += 1


@contextlib.contextmanager
def in_effect() -> Iterator[None]:
    """Put all permitted capabilities into effect within the block.

    /proc shows the environment of a process only to processes with all its capabilities in effect
    (ptrace(2)).
    """
    held = _permitted()
    if is_root():
        yield
        return
    _set(effective=held, permitted=held, inheritable=held)
    try:
        yield
    finally:
        carry()


def carry() -> None:
    """Put all capabilities out of effect, but keep them for programs to be started."""
    if is_root():
        return
    held = _permitted()
    _set(effective=0, permitted=held, inheritable=held)


def grant(wanted: Collection[Capability]) -> None:
    """Keep only these capabilities, if permitted, also after the next exec.

    A capability can be ambient only while it is permitted and inheritable, so the sets are set first.
    """
    if is_root():
        return
    share = _permitted() & _bits(wanted)
    _set(effective=share, permitted=share, inheritable=share)
    for capability in Capability:
        if share >> capability & 1:
            _checked(prctl(ProcessOption.CAP_AMBIENT, _AMBIENT_RAISE, capability))


def keep_ambient() -> None:
    """Keep only what an exec would leave: the ambient set."""
    if is_root():
        return
    ambient, number = 0, 0
    while (there := prctl(ProcessOption.CAP_AMBIENT, _AMBIENT_IS_SET, number)) >= 0:  # as in `bound`
        ambient |= there << number
        number += 1
    sets = _get()
    inheritable = int(sets[0].inheritable | sets[1].inheritable << 32)
    _set(effective=ambient, permitted=ambient, inheritable=inheritable)


def any_held() -> bool:
    """Return whether we have, or can give to a program, any capability at all."""
    return bool(_permitted())


def set_down(capability: Capability) -> None:
    """Put a capability out of effect until it is `taken_up`, also in threads started later."""
    if not is_root():
        _change_effective(0, 1 << capability)


@contextlib.contextmanager
def taken_up(capability: Capability) -> Iterator[None]:
    """Put a capability into effect within the block, only in this thread; without it, do nothing.

    A block must not switch greenlets: the others of this thread would have it, too.
    """
    bit = 1 << capability
    if is_root() or _effective() & bit or not _permitted() & bit:
        yield
        return
    _change_effective(bit, 0)
    try:
        yield
    finally:
        _change_effective(0, bit)


def keep_from_children(*, but: Collection[Capability] = ()) -> None:
    """Keep our capabilities, but pass none to programs that we start, except `but`.

    The kernel removes from the ambient set what is no longer inheritable.
    """
    held = _permitted()
    passed_on = held & _bits(but)
    _set(effective=held, permitted=held, inheritable=passed_on)


@contextlib.contextmanager
def passed_on(wanted: Collection[Capability]) -> Iterator[None]:
    """Pass these of our capabilities to programs that are started within the block.

    A block must not switch greenlets: what others start would have them, too.
    """
    if is_root():
        yield
        return
    held = _permitted()
    share = held & _bits(wanted)
    _set(effective=held, permitted=held, inheritable=share)
    try:
        for capability in Capability:
            if share >> capability & 1:
                _checked(prctl(ProcessOption.CAP_AMBIENT, _AMBIENT_RAISE, capability))
        yield
    finally:
        keep_from_children()


def _change_effective(added: int, removed: int) -> None:
    sets = _get()
    inheritable = int(sets[0].inheritable | sets[1].inheritable << 32)
    held = _permitted()
    _set(effective=(_effective() | added & held) & ~removed, permitted=held, inheritable=inheritable)


def _bits(wanted: Collection[Capability]) -> int:
    return sum(1 << each for each in set(wanted))


def _permitted() -> int:
    """Return the permitted set as bits."""
    sets = _get()
    return int(sets[0].permitted | sets[1].permitted << 32)


def _effective() -> int:
    sets = _get()
    return int(sets[0].effective | sets[1].effective << 32)


def _get() -> "ctypes.Array[_Sets]":
    sets = (_Sets * 2)()
    _checked(_LIBRARY.capget(ctypes.byref(_Header(_VERSION_3, 0)), sets))
    return sets


def _set(*, effective: int, permitted: int, inheritable: int) -> None:
    halves = [
        _Sets(*(each >> shift & 0xFFFFFFFF for each in (effective, permitted, inheritable)))
        for shift in (0, 32)
    ]
    _checked(_LIBRARY.capset(ctypes.byref(_Header(_VERSION_3, 0)), (_Sets * 2)(*halves)))


def _checked(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
