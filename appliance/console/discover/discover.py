"""`appliance discover`: the sources of servers, their age, and their problems."""

import time

import click

from appliance.console.discover.discovery_tables import discovery_tables
from appliance.console.output.printing import print_json, print_table
from appliance.console.program_questions import program_status
from appliance.model.paths import Paths
from appliance.model.program_names import DISCOVER
from appliance.model.snapshot.snapshot import SnapshotError
from appliance.net.files import snapshots
from appliance.wire.lines.discovery_status import DiscoveryStatus


@click.command(epilog="Example: appliance discover --json | jq '.sources[] | {name, seen_at, hold}'")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; the keys are stable.")
@click.pass_obj
def discover(paths: Paths, *, as_json: bool) -> None:
    """Show the sources of servers in the cluster's API, what was found, its age, and the last errors.

    Exits 0 if every source can be read and no server is held that the API no longer lists, else 1.

    JSON: installed (whether the bootstrap is complete), problems, not_kept (files), and sources, each with
    name, pools, servers (name, host, held), seen_at, changed_at, hold (why servers are held), proxy, and
    resources (what, server, seen_at, error, failed_at). Times are Unix seconds, null for never.
    """
    if not _is_configured(paths):
        nothing = "No pool discovers its servers."
        print_json({"sources": [], "problems": []}) if as_json else click.echo(nothing)
        return
    status = program_status(paths, DISCOVER, DiscoveryStatus)
    if as_json:
        print_json(status)
    else:
        print_table(discovery_tables(status, time.time()))
    if status.problems:
        raise SystemExit(1)


def _is_configured(paths: Paths) -> bool:
    """Return whether servers are to be discovered; True if the configuration cannot be read."""
    try:
        snapshot = snapshots.for_readers(paths)
    except SnapshotError:
        return True
    return snapshot is None or snapshot.kubernetes is not None
