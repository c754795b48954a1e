"""Events of an appliance that takes over from another one."""

from collections.abc import Mapping
from typing import Final

from appliance.core.log_events.log_event import NOTHING, REPORT, LogEvent

EVENTS: Final[Mapping[str, LogEvent]] = {
    "appliance-taken-over": LogEvent(
        "this appliance has taken over from the one with `version` and `pid`, with all that was open",
        f"{NOTHING}: a second `appliance run` requested it",
    ),
    "cannot-be-taken-over": LogEvent(
        "this appliance cannot listen for a second `appliance run`, which will not find it",
        "make room in the runtime directory (a tmpfs: `df /run`)",
    ),
    "predecessor-unknown": LogEvent(
        "supervisord cannot read what `run` passed to it about the previous appliance", REPORT
    ),
    "relieved": LogEvent(
        "the appliance with `version` and `pid` is in charge: this one exits with its last session",
        f"{NOTHING}: a second `appliance run` requested it",
    ),
    "snapshot-not-restored": LogEvent(
        "the configuration from before a failed take-over cannot be written again",
        "make room in the runtime directory, then `appliance reload`",
    ),
    "standing-by": LogEvent(
        "the appliance with `version` and `pid` takes over: this one continues if that fails",
        f"{NOTHING}: a second `appliance run` requested it",
    ),
    "take-over-failed": LogEvent(
        "an appliance failed to start, and the one that ran before continues",
        "read `reason`, and the log of the one that failed; then start it again",
    ),
    "upgrade-failed": LogEvent(
        "the new release did not request the take-over; this one continues",
        "read `reason`, fix the cause, then `appliance upgrade` again",
    ),
    "upgrading": LogEvent(
        "another release was started by `command`, and will take over",
        f"{NOTHING}: `appliance upgrade` or SIGUSR2 requested it",
    ),
    "take-over-not-noted": LogEvent(
        "`appliance status` will not show the result of a take-over; `appliance events` does",
        "make room in the runtime directory (a tmpfs: `df /run`)",
    ),
}
