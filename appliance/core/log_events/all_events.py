"""Every event of level warning and error, by its name."""

from collections.abc import Mapping
from typing import Final

from appliance.core.log_events import of_programs, of_servers, of_traffic, of_virtual_ips
from appliance.core.log_events.log_event import LogEvent

LOG_EVENTS: Final[Mapping[str, LogEvent]] = {
    **of_programs.EVENTS,
    **of_servers.EVENTS,
    **of_traffic.EVENTS,
    **of_virtual_ips.EVENTS,
}


def log_step(name: str, *, supervisorctl: str) -> str:
    """Return what to do about an event; `supervisorctl` is the command with the socket of this appliance."""
    return LOG_EVENTS[name].step.replace("{supervisorctl}", supervisorctl)
