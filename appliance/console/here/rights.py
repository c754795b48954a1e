"""What the kernel gives this user: capabilities, open files, nftables. The appliance may be given more."""

import os
from collections.abc import Iterator

from appliance.core.balancing.worker_shares import shortage
from appliance.model.capability import Capability
from appliance.model.messages.problems import Finding, Severity
from appliance.model.rules.machine_needs import nftables_paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.nftables.nftables import kernel_objection, unusable
from appliance.net.privileges import needed_capabilities
from appliance.net.process import limits


def missing_rights(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield what is missing; what only this user lacks is a warning, for `appliance run` may have it."""
    yield from _capabilities(snapshot)
    yield from _open_files(snapshot)
    yield from _nftables(snapshot)


def _capabilities(snapshot: Snapshot) -> Iterator[Finding]:
    missing = needed_capabilities.missing()
    if missing and snapshot.virtual_routers:
        yield Finding(
            path=("virtual_ips",),
            message=f"this user, {os.geteuid()}, has not {' and '.join(missing)}, without which no address"
            " can be held: start the appliance as root, by its unit, or in a container that has them",
            severity=Severity.WARNING,
        )


def _open_files(snapshot: Snapshot) -> Iterator[Finding]:
    files = limits.most_open_files()
    for group in snapshot.groups:
        lack = shortage(group, workers=group.workers or limits.processors(), open_files=files)
        if lack:
            yield Finding(
                path=(group.name,),
                message=f"each worker may open {lack.open_files} files here, enough for {lack.sessions}"
                f" connections of {lack.wanted}: raise the limit of open files (LimitNOFILE=, --ulimit"
                " nofile=, ulimit -n), or lower max_connections",
                severity=Severity.WARNING,
            )


def _nftables(snapshot: Snapshot) -> Iterator[Finding]:
    paths = nftables_paths(snapshot)
    if not paths:
        return
    why = unusable()
    if why is None and needed_capabilities.has(Capability.CAP_NET_ADMIN):
        why = kernel_objection()
    if why:
        yield from (Finding(path=path, message=f"nftables cannot be used here: {why}") for path in paths)
