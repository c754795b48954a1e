"""The commands that supervisord accepts at its socket: all except those that change the set of programs.

Every process of the appliance's user can send commands there, even without any capability, while supervisord
has the capabilities of all programs.
"""

from typing import Final

from supervisor.rpcinterface import SupervisorNamespaceRPCInterface
from supervisor.supervisord import Supervisor

_LEFT_OUT: Final = frozenset({"reloadConfig", "addProcessGroup", "removeProcessGroup"})
_OF_CLASSES: Final = frozenset({"__dict__", "__weakref__"})  # each class has its own

# supervisord's class without those commands. It lists what the class itself has, so this inherits nothing.
_Questions: Final = type(
    "Questions",
    (),
    {
        name: value
        for name, value in vars(SupervisorNamespaceRPCInterface).items()
        if name not in _LEFT_OUT | _OF_CLASSES
    },
)


def make(supervisor: Supervisor) -> object:
    """Return the interface that config/supervisord.conf names."""
    return _Questions(supervisor)
