"""What supervisord answers and does at its socket: everything but to change which programs there are.

Whoever has the appliance's user can ask there, also without any capability, and supervisord has those of all
programs.
"""

from typing import Final

from supervisor.rpcinterface import SupervisorNamespaceRPCInterface
from supervisor.supervisord import Supervisor

_LEFT_OUT: Final = frozenset({"reloadConfig", "addProcessGroup", "removeProcessGroup"})
_OF_CLASSES: Final = frozenset({"__dict__", "__weakref__"})  # each class has its own

# supervisord's own class without them. It lists what the class itself has, so that this inherits nothing.
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
    """Return the interface, as config/supervisord.conf names it."""
    return _Questions(supervisor)
