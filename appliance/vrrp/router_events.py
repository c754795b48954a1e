"""What `vrrp` tells of virtual routers: each change of state, and a second active one."""

import time
from collections.abc import Mapping
from typing import Final

from appliance.core.vrrp.election import Entered, RouterState, SplitBrain
from appliance.model.operator_events import EventKind, OperatorEvent
from appliance.vrrp.instance.vrrp_instance import VrrpInstance

_KINDS: Final[Mapping[RouterState, EventKind]] = {
    RouterState.INITIALIZE: EventKind.VIP_STOPPED,
    RouterState.BACKUP: EventKind.VIP_BACKUP,
    RouterState.ACTIVE: EventKind.VIP_ACTIVE,
    RouterState.FAULT: EventKind.VIP_FAULT,
}


def entered_event(instance: VrrpInstance, entered: Entered) -> OperatorEvent:
    """Return the event of a transition; its detail names the other router, or what is wrong here."""
    words = [f"peer {entered.peer}"] if entered.peer else []
    words += [f"priority {instance.election.priority}"]
    words += instance.faults.messages if entered.state is RouterState.FAULT else []
    return OperatorEvent(
        when=time.time(),
        kind=_KINDS[entered.state],
        subject=instance.name,
        before=entered.previous.value,
        after=entered.state.value,
        cause=entered.cause.value,
        detail=", ".join(words),
    )


def split_event(instance: VrrpInstance, split: SplitBrain) -> OperatorEvent:
    """Return the event of another active router that was heard while this one is active."""
    stays = "this one stays" if split.winner else "the other one stays"
    return OperatorEvent(
        when=time.time(),
        kind=EventKind.SPLIT_BRAIN,
        subject=instance.name,
        cause=f"peer {split.peer}",
        detail=f"its priority {split.priority}, ours {instance.election.priority}: {stays}",
    )
