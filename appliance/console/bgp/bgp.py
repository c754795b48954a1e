"""`appliance bgp`: shared IPs, the sessions with neighbours, and snippets for other daemons."""

import time
from typing import Final

import click

from appliance.console.bgp.bgp_tables import bgp_tables
from appliance.console.output.printing import print_json, print_table
from appliance.console.output.refusal import LOOK, Refused
from appliance.console.program_questions import ask_program, decoded_status
from appliance.console.runtime_access import require_access
from appliance.core.status.shared_ips import bgp_status, shared_ips, shared_troubles
from appliance.model.paths import Paths
from appliance.model.program_names import ANNOUNCE
from appliance.model.snapshot.snapshot import Snapshot, SnapshotError
from appliance.net.files import snapshots
from appliance.wire.lines.announce_status import AnnounceStatus
from appliance.wire.lines.control import Question

_TIMEOUT: Final = 10.0
_NONE: Final = "No shared IPs are configured."


@click.group(epilog="Example: appliance bgp status")
def bgp() -> None:
    """Show shared IPs and the sessions with routers, or print what another daemon needs."""


@bgp.command("status", epilog="Example: appliance bgp status --json | jq '.neighbors[].state'")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def bgp_status_command(paths: Paths, *, as_json: bool) -> None:
    """Show the state of each shared IP here, who has learnt it, who else serves it, and every session.

    Exits 1 if one is not served, if a session or BFD is down, for any other fault, or without an answer;
    else 0. With `engine: table` the sessions are another daemon's, and not shown.

    JSON: engine, trouble, addresses, each with name, addresses, state, since, reason, neighbors,
    announced_to, others; and neighbors, each with name, address, asn, state, since, bfd, exported, error.
    Times are Unix seconds.
    """
    snapshot = _accepted(paths)
    if not snapshot.shared_ips or snapshot.bgp is None:
        print_json({"addresses": [], "neighbors": []}) if as_json else click.echo(_NONE)
        return
    answer = ask_program(paths.control(ANNOUNCE), Question(command="status"), timeout=_TIMEOUT)
    status = decoded_status(paths, ANNOUNCE, answer, AnnounceStatus)
    wrong = tuple(shared_troubles(status))
    if as_json:
        print_json(answer.values)
    else:
        shown = shared_ips(snapshot, status)
        print_table(bgp_tables(shown, bgp_status(snapshot.bgp, status), wrong, time.time()))
    if wrong:
        raise SystemExit(1)


def _accepted(paths: Paths) -> Snapshot:
    """Return the accepted configuration; raises ClickException without one."""
    require_access(paths.runtime)
    try:
        accepted = snapshots.for_readers(paths)
    except SnapshotError as error:
        raise Refused(str(error), step=LOOK) from error
    if accepted is None:
        raise Refused(f"there is no accepted configuration: {paths.accepted}", step=LOOK)
    return accepted
