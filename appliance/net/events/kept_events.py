"""The events to show: those in the persistent file, and those only on boards so far.

The boards are read, too, so that the latest events are shown while none are collected, and if the state
directory cannot be written.
"""

from appliance.model.operator_events import OperatorEvent
from appliance.model.paths import Paths
from appliance.net.events.event_file import tail
from appliance.net.events.event_follower import published


def events_since(paths: Paths, since: float = 0.0, *, limit: int | None = None) -> list[OperatorEvent]:
    """Return the events since a time in Unix seconds, oldest first; if too many, the newest `limit`."""
    found = {each.id: each for each in (*tail(paths.events), *published(paths.runtime)) if each.when >= since}
    events = sorted(found.values(), key=lambda each: each.when)
    return events if limit is None else events[max(0, len(events) - limit) :]
