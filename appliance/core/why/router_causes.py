"""The causes of a virtual router's transitions as parts of a sentence."""

from collections.abc import Mapping
from typing import Final

from appliance.core.vrrp.election_messages import Cause

CAUSES: Final[Mapping[str, str]] = {
    Cause.STARTED: "it was started",
    Cause.RESUMED: "it was started again and had been active before",
    Cause.ACTIVE_DOWN: "advertisements of the active router stopped arriving",
    Cause.ACTIVE_LEFT: "the active router has left",
    Cause.PREEMPTED: "it has taken over from a router of lower priority",
    Cause.HIGHER_PRIORITY: "a router of higher priority advertises",
    Cause.HIGHER_ADDRESS: "a router of the same priority and a higher address advertises",
    Cause.HANDED_OVER: "it was handed over",
    Cause.FAULT: "a fault",
    Cause.RECOVERED: "a fault has ended",
    Cause.GROUP: "its sync group has moved",
    Cause.STOPPED: "it was stopped",
}
