"""Events of one appliance that takes over from another one."""

from collections.abc import Mapping
from typing import Final

from appliance.core.log_events.log_event import NOTHING, REPORT, LogEvent

EVENTS: Final[Mapping[str, LogEvent]] = {
    "appliance-taken-over": LogEvent(
        "this appliance has taken over from the one of `version` and `pid`, with all that was open",
        f"{NOTHING}: it was asked for by a second `appliance run`",
    ),
    "cannot-be-taken-over": LogEvent(
        "a second `appliance run` will not find this one: it cannot listen for it",
        "make room in the runtime directory (a tmpfs: `df /run`)",
    ),
    "predecessor-unknown": LogEvent("what `run` has left for supervisord cannot be read", REPORT),
    "relieved": LogEvent(
        "the appliance of `version` and `pid` is in charge: this one ends with its last session",
        f"{NOTHING}: it was asked for by a second `appliance run`",
    ),
    "snapshot-not-restored": LogEvent(
        "what was accepted before a take-over that failed cannot be written again",
        "make room in the runtime directory, and reload (`appliance reload`)",
    ),
    "standing-by": LogEvent(
        "the appliance of `version` and `pid` takes over: this one goes on if that fails",
        f"{NOTHING}: it was asked for by a second `appliance run`",
    ),
    "take-over-failed": LogEvent(
        "an appliance did not come up, and the one that ran before goes on",
        "read `reason`, and the log of the one that did not come up; then start it again",
    ),
    "upgrade-failed": LogEvent(
        "the release that was to take over has not asked for it; this one goes on",
        "read `reason`, put it right, then `appliance upgrade` again",
    ),
    "upgrading": LogEvent(
        "another release was started by `command`, and is to take over",
        f"{NOTHING}: it was asked for by `appliance upgrade`, or by SIGUSR2",
    ),
    "take-over-not-noted": LogEvent(
        "`appliance status` will not show what became of a take-over; `appliance events` does",
        "make room in the runtime directory (a tmpfs: `df /run`)",
    ),
}
