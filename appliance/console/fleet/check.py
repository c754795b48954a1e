"""`appliance fleet check`: a configuration, judged by the release of every node."""

from pathlib import Path

import click

from appliance.console.fleet.asking import Way, missing
from appliance.console.fleet.remote import RemoteCommand, why
from appliance.console.output.error_positions import located
from appliance.console.output.printing import print_json
from appliance.model.messages.quoting import printable
from appliance.wire.lines import node_answers
from appliance.wire.lines.control import AnswerProblem
from appliance.wire.lines.node_answers import NodeAnswerError, NodeVerdict


@click.command("check", epilog="Example: appliance fleet check new.yaml && appliance fleet push new.yaml")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--here", is_flag=True, help="Also check the machine of each node, as `appliance check --here` does."
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON.")
@click.pass_obj
def fleet_check(way: Way, *, file: Path | None, here: bool, as_json: bool) -> None:
    """Have every node check FILE, by default the configuration of --config; change nothing.

    Each node is one that FILE names, and judges by the release and the foreign files that it has. Exits 0 if
    all nodes find no errors; warnings do not count.

    JSON: ok, file, nodes, each with name, ok, trouble (why it has not answered, or null), errors, warnings.
    """
    fleet = way.fleet(file)
    words = ["check", "--json", *(["--here"] if here else []), "-"]
    found = [(each, _verdict(each)) for each in fleet.ask(words, given=fleet.text)]
    ok = all(isinstance(verdict, NodeVerdict) and verdict.ok for _, verdict in found)
    if as_json:
        nodes = [_values(command, verdict) for command, verdict in found]
        print_json({"ok": ok, "file": str(fleet.file), "nodes": nodes})
    else:
        for command, verdict in found:
            _print(command.name, verdict, fleet.file)
    if not ok:
        raise SystemExit(1)


def _verdict(command: RemoteCommand) -> NodeVerdict | str:
    """Return what a node says of the file, or why it says nothing."""
    if trouble := missing(command):
        return trouble
    try:
        return node_answers.verdict(bytes(command.output))
    except NodeAnswerError as error:
        return f"{why(command)} ({error})"


def _values(command: RemoteCommand, verdict: NodeVerdict | str) -> dict[str, object]:
    if isinstance(verdict, str):
        return {"name": command.name, "ok": False, "trouble": verdict, "errors": [], "warnings": []}
    return {
        "name": command.name,
        "ok": verdict.ok,
        "trouble": None,
        "errors": verdict.errors,
        "warnings": verdict.warnings,
    }


def _print(name: str, verdict: NodeVerdict | str, file: Path) -> None:
    if isinstance(verdict, str):
        click.echo(f"{name}: {printable(verdict)}")
        return
    for each in verdict.errors:
        click.echo(f"{name}: {_line(each, file)}")
    for each in verdict.warnings:
        click.echo(f"{name}: warning: {_line(each, file)}")
    click.echo(f"{name}: {'ok' if verdict.ok else 'refused'}")


def _line(problem: AnswerProblem, file: Path) -> str:
    """Return a problem with its place; what came by standard input is the file of here."""
    return printable(located(problem, file)).replace("<stdin>", str(file), 1)
