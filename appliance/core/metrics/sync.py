"""Metrics of connections that other nodes learn, and that this node has learned (`sync`)."""

from collections.abc import Iterator

from appliance.core.forwarding.sync_state import SyncPhase
from appliance.core.status.observations import Observations
from appliance.wire.exposition import Metric, counter, gauge, labels
from appliance.wire.lines.forward_status import ForwardStatus


def sync_metrics(observations: Observations) -> Iterator[Metric]:
    """Yield the metrics, none without `sync`."""
    forward = observations.answer(ForwardStatus)
    found = forward.sync if forward else None
    if found is None:
        return
    about = "1 for the current state of `sync` on this node, 0 for the others."
    states = [(labels(state=each.value), int(found.state == each)) for each in SyncPhase]
    yield gauge("appliance_sync_state", about, states)
    about = "Messages of other nodes about connections, applied since the start of conntrackd."
    yield counter("appliance_sync_received", about, [("", found.received)])
    about = "Bytes exchanged with other nodes about connections, since the start of conntrackd."
    amounts = [
        (labels(direction="sent"), found.bytes_sent),
        (labels(direction="received"), found.bytes_received),
    ]
    yield counter("appliance_sync_bytes", about, amounts)
    about = "What other nodes or this one did not learn: lost messages, and connections the kernel refused."
    failures = [(labels(kind="lost"), found.errors), (labels(kind="refused"), found.failed)]
    yield counter("appliance_sync_errors", about, failures)
