"""`appliance fleet status`: all nodes in one table."""

from collections.abc import Iterator, Sequence

import click
from rich.console import Group, RenderableType
from rich.text import Text

from appliance.console.fleet.asking import Way, missing
from appliance.console.fleet.remote import RemoteCommand, why
from appliance.console.output.printing import columns, print_json, print_table
from appliance.core.fleet.fleet_status import NodeReport, problems, shown
from appliance.model.messages.quoting import printable
from appliance.wire.lines import node_answers
from appliance.wire.lines.node_answers import NodeAnswerError


@click.command("status", epilog="Example: appliance fleet status --json | jq '.nodes[] | {name, holds}'")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON; the keys are stable.")
@click.pass_obj
def fleet_status(way: Way, *, as_json: bool) -> None:
    """Show all nodes: release, digest of the configuration, virtual IPs that each has, problems.

    Exits 0 if `appliance status` does on every node, all run the same release with the same configuration,
    and every virtual IP is on some node; else 1. Each line that begins with `!` is a reason.

    JSON: ok, problems, nodes, each with name, ok, trouble (why it has not answered, or null), version, digest
    (SHA-256 of its configuration file), holds (names of virtual IPs), problems.
    """
    reports = tuple(map(report, way.fleet().ask(["status", "--json"])))
    wrong = tuple(map(printable, problems(reports)))
    if as_json:
        print_json({"ok": not wrong, "problems": wrong, "nodes": list(map(_values, reports))})
    else:
        print_table(Group(*_tables(reports, wrong)))
    if wrong:
        raise SystemExit(1)


def report(command: RemoteCommand) -> NodeReport:
    """Return what a node has answered to `status --json`, or why it has not."""
    if trouble := missing(command):
        return NodeReport(name=command.name, trouble=trouble)
    try:
        found = node_answers.status(bytes(command.output))
    except NodeAnswerError as error:
        return NodeReport(name=command.name, trouble=f"{why(command)} ({error})")
    return NodeReport(name=command.name, status=found)


def _values(each: NodeReport) -> dict[str, object]:
    found = each.status
    return {
        "name": each.name,
        "ok": bool(found and found.ok),
        "trouble": each.trouble,
        "version": found and found.version,
        "digest": found and found.digest,
        "holds": each.holds,
        "problems": found.problems if found else (),
    }


def _tables(reports: Sequence[NodeReport], wrong: Sequence[str]) -> Iterator[RenderableType]:
    table = columns("node", "state", "release", "configuration", "virtual ips...")
    for each in reports:
        found = each.status
        state = "no answer" if found is None else "well" if found.ok else "problems"
        version = (found and found.version) or "-"
        digest = shown(found.digest if found else None)
        row = (each.name, state, version, digest, " ".join(each.holds) or "-")
        table.add_row(*(Text(printable(cell)) for cell in row))
    yield table
    for problem in wrong:
        yield Text(f"! {problem}", style="red")
