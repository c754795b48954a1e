"""Addresses to listen on that this machine does not give: taken by others, not its own, not allowed."""

import contextlib
import socket
from collections.abc import Iterator

from appliance.model.messages.problems import Finding, Path, Severity
from appliance.model.paths import Paths
from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.snapshot import Snapshot, SnapshotError
from appliance.net.files import snapshots
from appliance.net.listening.bind_refusals import may_be_given
from appliance.net.listening.listeners import Listeners, ReservedBinds


def refused_binds(snapshot: Snapshot, paths: Paths) -> Iterator[Finding]:
    """Yield what cannot be bound here and now; ports that our own appliance has are ours.

    Each is bound for a moment, as a reload does. A right that this user lacks and the appliance may have is a
    warning.
    """
    ours = _ports_of_ours(paths)
    for path, bind in wanted_binds(snapshot):
        if bind.port in ours:
            continue
        probe = Listeners()
        reserved = probe.reserve([bind], virtual=snapshot.virtual_addresses)
        if not isinstance(reserved, ReservedBinds):
            for each in reserved:
                severity = Severity.WARNING if may_be_given(each.reason) else Severity.ERROR
                yield Finding(path=path, message=str(each), severity=severity)
        probe.keep_only(())


def wanted_binds(snapshot: Snapshot) -> Iterator[tuple[Path, Bind]]:
    """Yield every address that a configuration listens on, with the path of its key."""
    for group in snapshot.groups:
        for frontend in group.frontends:
            for at, bind in enumerate(frontend.binds):
                yield (group.name, "frontends", frontend.name, "bind", at), bind
    if snapshot.stats:
        yield ("stats", "bind"), snapshot.stats.bind
        for at, bind in enumerate(snapshot.stats.more_binds):
            yield ("stats", "also_bind", at), bind


def _ports_of_ours(paths: Paths) -> frozenset[int]:
    """Return the ports that an appliance has which runs by this runtime directory."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(paths.supervisor_socket))
        except PermissionError:
            pass  # somebody listens: who may not ask it may still read what is accepted
        except OSError:
            return frozenset()
    with contextlib.suppress(SnapshotError):
        accepted = snapshots.for_readers(paths)
        return frozenset(bind.port for _, bind in wanted_binds(accepted)) if accepted else frozenset()
    return frozenset()
