"""`appliance status`: the state of the whole appliance, even while parts of it are down."""

import time

import click
import msgspec

from appliance.console.output.printing import print_json, print_table
from appliance.console.program_questions import interrupt_quietly
from appliance.console.runtime_access import require_access
from appliance.console.status.status_tables import tables
from appliance.core.status.assessment import assess
from appliance.core.status.status import Status
from appliance.model.paths import Paths
from appliance.net.observing.observation import observe
from appliance.net.process.collection import no_collection


def current_status(paths: Paths) -> Status:
    """Return the current status, by asking all programs and reading all boards."""
    interrupt_quietly()
    return assess(observe(paths), time.time())


@click.command(epilog="Example: appliance status --json | jq '.pools[].servers[] | {name, state}'")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON; the keys are stable.")
@click.pass_obj
@no_collection()
def status(paths: Paths, *, as_json: bool) -> None:
    """Show programs, virtual IPs, frontends, pools, servers, and what draining generations still hold.

    Exits 0 if every program that the configuration needs runs, every pool in use has a server up, no frontend
    is at its max_connections, every reload socket is open, the last reload was accepted, all files could be
    written, no virtual IP is in fault or conflict, no other node reports another configuration or servers
    in another state, and the properties of a virtual machine are valid; else 1.
    Each line that begins with `!` is a reason. Works while programs are down, supervisord included.

    JSON: ok, problems, at, version, configuration (its number), source, cluster, degraded, supervisor,
    programs, frontends, pools (with servers and their last check), generations (with what they hold), ended,
    virtual_ips, guest (properties of a virtual machine, null elsewhere), set_aside (damaged files),
    left_out (what HAProxy is left with), take_overs (upgrades in place: done, failed, and the last of each),
    nodes (the others, as they report to `linger`: release, configuration, differs_since, judged),
    digest (SHA-256 of the configuration file that is used; of several, one after another).
    Times are Unix seconds, durations seconds.
    """
    require_access(paths.runtime)
    now = current_status(paths)
    if as_json:
        print_json(msgspec.Raw(now.json()))
    else:
        print_table(tables(now, supervisorctl=paths.supervisorctl))
    if not now.ok:
        raise SystemExit(1)
