"""Who holds which capability: each program what it uses, its children nothing (capabilities(7)).

The whole appliance is one ordinary user. What it was given (by podman, by systemd's AmbientCapabilities, or
by `unprivileged.become`) lies with supervisord, which carries it without using it, and hands each program
its share at the exec, by the ambient set: file capabilities are lost with no-new-privileges, and fail the
exec where one of them is not to be had. A program keeps its share from its own children.

As root, and as a user who was given nothing, all this changes nothing.
"""

import ctypes
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from appliance.net.process.privileges import Capability

_USED: Final[Mapping[str, frozenset[Capability]]] = {
    "appliance.programs.proxy": frozenset({Capability.CAP_NET_BIND_SERVICE}),
    "appliance.programs.vrrp": frozenset(
        {
            Capability.CAP_NET_ADMIN,
            Capability.CAP_NET_RAW,
            Capability.CAP_IPC_LOCK,
            Capability.CAP_SYS_NICE,
            Capability.CAP_SYS_RESOURCE,
        }
    ),
}
EVERYTHING: Final = frozenset().union(*_USED.values())
"""What the programs use, together."""

_VERSION_3: Final = 0x20080522  # linux/capability.h
_PR_CAP_AMBIENT: Final = 47  # linux/prctl.h
_PR_CAP_AMBIENT_RAISE: Final = 2
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
    """Return what a command `python -m MODULE ...` uses; nothing for a program that is not ours."""
    module = command[2] if len(command) > 2 and command[1] == "-m" else ""
    return _USED.get(module, frozenset())


def carry() -> None:
    """Use no capability, and keep all of them for those that are started."""
    if os.geteuid() == 0:
        return
    held = _permitted()
    _set(effective=0, permitted=held, inheritable=held)


def hand_over(wanted: Collection[Capability]) -> None:
    """Have these, as far as they are permitted, and no others, over the next exec too."""
    if os.geteuid() == 0:
        return
    share = _permitted() & sum(1 << each for each in set(wanted))
    _set(effective=share, permitted=share, inheritable=share)
    for capability in Capability:
        if share >> capability & 1:
            _checked(_LIBRARY.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, int(capability), 0, 0))


def keep_from_children() -> None:
    """Go on with what we have; nothing that we start has any of it."""
    held = _permitted()
    _set(effective=held, permitted=held, inheritable=0)  # which empties the ambient set too


def _permitted() -> int:
    """Return the permitted set as bits."""
    sets = (_Sets * 2)()
    _checked(_LIBRARY.capget(ctypes.byref(_Header(_VERSION_3, 0)), sets))
    return int(sets[0].permitted | sets[1].permitted << 32)


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
