"""Metrics of the sources of servers and connections: discovery in the cluster, and redirects."""

from collections.abc import Iterator

from appliance.core.status.status import Status
from appliance.wire.exposition import Metric, gauge, labels
from appliance.wire.lines.discovery_status import SourceStatus
from appliance.wire.lines.redirect_status import RedirectState


def source_metrics(status: Status) -> Iterator[Metric]:
    """Yield the metrics of every source of servers, and of every redirect of the configuration."""
    yield from _discovery(status)
    yield from _redirects(status)


def _discovery(status: Status) -> Iterator[Metric]:
    named = [(labels(source=each.name), each) for each in status.discovery]
    about = "Seconds since the cluster's API listed a source's servers; absent before the first time."
    ages = [(name, max(0.0, status.at - each.seen_at)) for name, each in named if each.seen_at is not None]
    yield gauge("appliance_discovery_age_seconds", about, ages)
    about = "1 if all lists of a source are watched without an error."
    yield gauge("appliance_discovery_ok", about, [(name, int(_is_well(each))) for name, each in named])
    about = "Servers of a source."
    yield gauge("appliance_discovery_servers", about, [(name, len(each.servers)) for name, each in named])
    about = "Servers of a source that are kept although the API no longer lists them."
    held = [(name, sum(server.held for server in each.servers)) for name, each in named]
    yield gauge("appliance_discovery_held_servers", about, held)


def _is_well(source: SourceStatus) -> bool:
    return source.seen_at is not None and not any(each.error for each in source.resources)


def _redirects(status: Status) -> Iterator[Metric]:
    about = "1 for the current state of a frontend's redirect, 0 for the others."
    samples = [
        (labels(frontend=each.name, state=state.value), int(each.state == state.value))
        for each in status.redirects
        for state in RedirectState
    ]
    yield gauge("appliance_redirect_state", about, samples)
