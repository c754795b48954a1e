"""Names of servers, pools, frontends, addresses and neighbours of the running appliance, for completion.

If nothing can be read, nothing is offered: a shell has no place for a reason.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from appliance.model.paths import Paths

if TYPE_CHECKING:
    from appliance.model.snapshot.snapshot import Snapshot


def server_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the servers as POOL/SERVER."""
    return _beginning(incomplete, _servers(_accepted(ctx)))


def frontend_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the frontends."""
    return _beginning(incomplete, _frontends(_accepted(ctx)))


def virtual_ip_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the virtual IPs."""
    return _beginning(incomplete, _virtual_ips(_accepted(ctx)))


def all_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return everything with a name: servers, pools, frontends, addresses, neighbours."""
    accepted = _accepted(ctx)
    pools = (pool.name for pool in accepted.pools) if accepted else ()
    named = (*_servers(accepted), *pools, *_frontends(accepted), *_virtual_ips(accepted), *_shared(accepted))
    return _beginning(incomplete, iter(named))


def _beginning(incomplete: str, names: Iterator[str]) -> list[str]:
    return [each for each in dict.fromkeys(names) if each.startswith(incomplete)]


def _servers(accepted: "Snapshot | None") -> Iterator[str]:
    for pool in accepted.pools if accepted else ():
        yield from (f"{pool.name}/{server.name}" for server in pool.servers)


def _frontends(accepted: "Snapshot | None") -> Iterator[str]:
    for group in accepted.groups if accepted else ():
        yield from (frontend.name for frontend in group.frontends)


def _virtual_ips(accepted: "Snapshot | None") -> Iterator[str]:
    return (each.name for each in accepted.virtual_routers) if accepted else iter(())


def _shared(accepted: "Snapshot | None") -> Iterator[str]:
    if accepted:
        yield from (each.name for each in accepted.shared_ips)
        yield from (each.name for each in (accepted.bgp.neighbors if accepted.bgp else ()))


def _accepted(ctx: click.Context) -> "Snapshot | None":
    from appliance.model.snapshot.snapshot import SnapshotError  # noqa: PLC0415  # only where a name is completed
    from appliance.net.files import snapshots  # noqa: PLC0415  # the same

    runtime = ctx.find_root().params.get("runtime_dir")
    paths = Paths(runtime=runtime) if isinstance(runtime, Path) else Paths()
    try:
        return snapshots.for_readers(paths)
    except (SnapshotError, OSError):
        return None
