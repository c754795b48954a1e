"""Addresses of a configuration that cannot be bound on this machine."""

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
    """Yield the addresses that cannot be bound here and now; ports of our own appliance are ours.

    Each is bound for a moment, as in a reload. A right that this user lacks and the appliance may have is a
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
    """Return the ports of the appliance that runs with this runtime directory."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(paths.supervisor_socket))
        except PermissionError:
            pass  # a process listens: a user who may not connect may still read the accepted configuration
        except OSError:
            return frozenset()
    with contextlib.suppress(SnapshotError):
        accepted = snapshots.for_readers(paths)
        return frozenset(bind.port for _, bind in wanted_binds(accepted)) if accepted else frozenset()
    return frozenset()
