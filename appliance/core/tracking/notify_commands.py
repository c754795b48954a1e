"""Which notify commands run when a virtual router changes its state, and with which arguments.

As in keepalived (`notify_master` and the others, `notify`): the command for one state has only the arguments
of the configuration. The command for any state has four more: `INSTANCE`, the name, keepalived's word for the
state, and the priority. So scripts that were written for keepalived work unchanged.
"""

from typing import Final

from appliance.core.vrrp.election import RouterState
from appliance.model.snapshot.virtual_router import VirtualRouter

_WORDS: Final = {
    RouterState.ACTIVE: "MASTER",
    RouterState.BACKUP: "BACKUP",
    RouterState.FAULT: "FAULT",
    RouterState.INITIALIZE: "STOP",
}


def fifo_line(router: VirtualRouter, state: RouterState, *, priority: int) -> str:
    """Return the line that is written to a FIFO for a state (keepalived.conf(5), `notify_fifo`)."""
    return f'INSTANCE "{router.name}" {_WORDS[state]} {priority}'


def commands(router: VirtualRouter, state: RouterState, *, priority: int) -> tuple[tuple[str, ...], ...]:
    """Return the commands to run, each as its arguments; INITIALIZE is the end of a stop."""
    notify = router.notify
    own = {
        RouterState.ACTIVE: notify.active,
        RouterState.BACKUP: notify.backup,
        RouterState.FAULT: notify.fault,
        RouterState.INITIALIZE: notify.stop,
    }[state]
    found = [own] if own else []
    if notify.any:
        found.append((*notify.any, "INSTANCE", router.name, _WORDS[state], str(priority)))
    return tuple(found)
