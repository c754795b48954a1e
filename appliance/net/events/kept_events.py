"""What happened, for those who show it: the file that is kept, and what is only on boards as yet.

The boards are read too, so that the last events are there while nobody collects them, and where the state
directory cannot be written.
"""

from appliance.model.operator_events import OperatorEvent
from appliance.model.paths import Paths
from appliance.net.events.event_file import tail
from appliance.net.events.event_follower import told


def events_since(paths: Paths, since: float = 0.0, *, limit: int | None = None) -> list[OperatorEvent]:
    """Return the events since a moment in Unix seconds, oldest first; of too many the newest `limit`."""
    found = {each.id: each for each in (*tail(paths.events), *told(paths.runtime)) if each.when >= since}
    events = sorted(found.values(), key=lambda each: each.when)
    return events if limit is None else events[max(0, len(events) - limit) :]
