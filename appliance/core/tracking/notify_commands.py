"""Which commands are run when a virtual router changes its state, and what they are told.

As keepalived does it: the command of one state gets the words of the file and nothing else, the one for any
state gets `INSTANCE`, the name, keepalived's word for the state and the priority behind its own words.
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


def commands(router: VirtualRouter, state: RouterState, *, priority: int) -> tuple[tuple[str, ...], ...]:
    """Return the commands to run, each as its words; INITIALIZE is the end of a stop."""
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
