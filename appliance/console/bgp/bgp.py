"""`appliance bgp`: shared IPs, the sessions with neighbours, and snippets for other daemons."""

import contextlib
import time
from dataclasses import replace
from pathlib import Path
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
from appliance.net.netlink.route_lookup import own_address
from appliance.net.sources.judging import collect, load
from appliance.net.sources.read_files import ReadFiles
from appliance.wire.bgp_examples.bird_example import bird_example
from appliance.wire.bgp_examples.frr_example import frr_example
from appliance.wire.bird.bird_config import needs_source
from appliance.wire.lines.announce_status import AnnounceStatus
from appliance.wire.lines.control import Question

_FRR: Final = "frr"
_TIMEOUT: Final = 10.0
_SOMEWHERE: Final = "192.0.2.1"  # an address for documentation: only the route to it is looked up
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


@bgp.command("example", epilog="Example: appliance bgp example frr")
@click.argument("daemon", type=click.Choice([_FRR, "bird"]))
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.pass_obj
def example(paths: Paths, *, daemon: str, file: Path | None) -> None:
    """Print what the FRR or BIRD of this host needs, to announce shared IPs with `engine: table`.

    It is for the accepted configuration, or for FILE before it is accepted. Nothing changes. A password is
    left out: put it in where REPLACE-ME stands.
    """
    snapshot = _accepted(paths) if file is None else _loaded(paths, file)
    if not snapshot.shared_ips or snapshot.bgp is None:
        raise Refused("no shared IPs are configured", step="add `shared_ips` and `bgp`: docs/shared-ips.md")
    if not snapshot.bgp.neighbors:
        raise Refused("`bgp` has no neighbours at this node", step="name the routers in `bgp.neighbors`")
    towards = next((each.address for each in snapshot.bgp.neighbors if ":" not in each.address), _SOMEWHERE)
    router_id = snapshot.bgp.router_id or _own_address(towards)
    if not router_id:
        step = "set `bgp.router_id` to an address that no other node has"
        raise Refused("this node has no IPv4 address towards its routers", step=step)
    if daemon == _FRR:
        text = frr_example(snapshot.bgp, snapshot.shared_ips, router_id=router_id)
    else:
        hops = (each for each in snapshot.bgp.neighbors if needs_source(each, snapshot.bgp))
        sources = {each.name: own for each in hops if (own := _own_address(each.address))}
        text = bird_example(snapshot.bgp, snapshot.shared_ips, router_id=router_id, sources=sources)
    click.echo(text, nl=False)


def _own_address(router: str) -> str:
    """Return this node's address towards a router, "" without one."""
    with contextlib.suppress(OSError):
        return own_address(router)
    return ""


def _loaded(paths: Paths, file: Path) -> Snapshot:
    """Return the configuration in a file; raises ClickException with its errors."""
    loaded = load(collect(replace(paths, config=file, haproxy=(), keepalived=None), ReadFiles()), number=0)
    if loaded.snapshot is None:
        raise Refused("; ".join(map(str, loaded.errors)), step=f"`appliance check {file}`")
    return loaded.snapshot


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
