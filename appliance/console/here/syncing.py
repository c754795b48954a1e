"""Requirements of `sync` that this machine lacks: conntrackd."""

from collections.abc import Iterator

from appliance.forward.conntrackd import MISSING, executable
from appliance.model.messages.problems import Finding
from appliance.model.snapshot.snapshot import Snapshot


def sync_lacks(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield each, at the frontends that need it."""
    if executable() is None:
        for group, each in snapshot.forwarded:
            if each.sync:
                yield Finding(path=(group.name, "frontends", each.name, "sync"), message=MISSING)
