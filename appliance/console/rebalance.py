"""`appliance rebalance`: gives another node a share of this node's sessions of shared IPs."""

from typing import Final

import click
import msgspec

from appliance.console.output.printing import print_json
from appliance.console.output.refusal import Refused
from appliance.console.program_questions import ask_program, program_status
from appliance.model.paths import Paths
from appliance.model.program_names import LINGER, MIGRATE
from appliance.wire.lines.control import Question
from appliance.wire.lines.linger_status import LingerStatus
from appliance.wire.lines.migrate_status import DepartureStatus

_TIMEOUT: Final = 600.0  # seconds: each worker moves sessions for 20 s at most


@click.command(epilog="Example: appliance rebalance 10.0.0.12 --share 25")
@click.argument("node")
@click.option(
    "--share",
    type=click.FloatRange(min=0, max=100, min_open=True),
    default=None,
    metavar="PERCENT",
    help="Share of the sessions of this node; by default an equal one for each node that serves.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def rebalance(paths: Paths, *, node: str, share: float | None, as_json: bool) -> None:
    """Give NODE a share of this node's sessions of shared IPs, as that node has returned and is empty.

    NODE is its name or address, as in `appliance fleet status`. The sessions go on there, and nobody notices.
    Sessions of virtual IPs return with their address by themselves. Exits 1 if nothing can move.

    JSON: addresses (each with node, moved, stay, trouble).
    """
    part = _equal_share(paths) if share is None else share / 100
    question = Question(command="rebalance", values={"node": node, "share": part})
    answer = ask_program(paths.control(MIGRATE), question, timeout=_TIMEOUT)
    if not answer.ok:
        step = "`appliance vip status` and `appliance bgp status` which nodes serve"
        raise Refused(answer.reason, step=step)
    found = msgspec.convert(answer.values.get("addresses"), tuple[DepartureStatus, ...])
    if as_json:
        print_json({"addresses": found})
    for each in () if as_json else found:
        click.echo(f"{each.address}: {each.moved} moved to {each.node}")
        for why, count in each.stay.items():
            click.echo(f"  {count} stay: {why}")
        if each.trouble:
            click.echo(f"  {each.trouble}", err=True)
    if any(each.trouble for each in found):
        raise SystemExit(1)


def _equal_share(paths: Paths) -> float:
    """Return the share of one node among all that serve."""
    status = program_status(paths, LINGER, LingerStatus)
    return 1 / (1 + max((len(each.nodes) for each in status.shared), default=1))
