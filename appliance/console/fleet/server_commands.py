"""`appliance fleet drain`, `ready`, `maint` and `weight`: the states of servers on all nodes."""

from collections.abc import Sequence
from typing import Final

import click

from appliance.console.completion.names import server_names
from appliance.console.fleet.asking import Way, missing
from appliance.console.fleet.remote import RemoteCommand, why
from appliance.console.output.printing import print_json
from appliance.model.messages.quoting import printable
from appliance.wire.lines import node_answers
from appliance.wire.lines.node_answers import NodeAnswerError

_JSON: Final = (
    "Print as JSON: ok, and nodes, each with name, ok, trouble, and answer (what the command prints there)."
)
_AFTER: Final = (
    "Each node has its own state of a server, and the backup may become active. Exits 1 if a node refuses, "
    "or cannot be reached: the others have changed it."
)

_servers = click.argument(
    "servers", nargs=-1, required=True, metavar="POOL/SERVER...", shell_complete=server_names
)
_json = click.option("--json", "as_json", is_flag=True, help=_JSON)


def _command(name: str, effect: str) -> click.Command:
    """Return the command that does `appliance NAME` on all nodes."""

    @click.command(name, help=f"{effect}\n\n{_AFTER}", epilog=f"Example: appliance fleet {name} masters/m-1")
    @_servers
    @_json
    @click.pass_obj
    def command(way: Way, *, servers: tuple[str, ...], as_json: bool) -> None:
        _on_all(way, name, servers, as_json=as_json)

    return command


@click.command(
    "weight",
    help=f"Set a weight for servers on all nodes, as `appliance weight` does on one.\n\n{_AFTER}",
    epilog="Example: appliance fleet weight masters/m-1 50%",
)
@_servers
@click.argument("weight", metavar="N|N%")
@_json
@click.pass_obj
def fleet_weight(way: Way, *, servers: tuple[str, ...], weight: str, as_json: bool) -> None:
    """Set a weight on all nodes."""
    _on_all(way, "weight", (*servers, weight), as_json=as_json)


def _on_all(way: Way, name: str, words: Sequence[str], *, as_json: bool) -> None:
    commands = way.fleet().ask([name, *(["--json"] if as_json else []), "--", *words])
    ok = all(map(_is_done, commands))
    if as_json:
        print_json({"ok": ok, "nodes": list(map(_values, commands))})
    else:
        for each in commands:
            _print(each)
    if not ok:
        raise SystemExit(1)


def _is_done(command: RemoteCommand) -> bool:
    return command.status == 0


def _values(command: RemoteCommand) -> dict[str, object]:
    answer: object = None
    trouble = None if _is_done(command) else printable(why(command))
    if trouble is None:
        try:
            answer = node_answers.values(bytes(command.output))
        except NodeAnswerError as error:
            trouble = str(error)
    return {"name": command.name, "ok": _is_done(command), "trouble": trouble, "answer": answer}


def _print(command: RemoteCommand) -> None:
    """Print what a node says; what it refuses is on standard error, as on the node itself."""
    for line in bytes(command.output).decode(errors="replace").splitlines():
        click.echo(f"{command.name}: {printable(line)}")
    if _is_done(command):
        return
    trouble = missing(command)
    for line in [trouble] if trouble else command.errors.splitlines() or [why(command)]:
        click.echo(f"{command.name}: {printable(line)}", err=True)


fleet_drain: Final = _command("drain", "Send servers no new connections, on all nodes; open ones continue.")
fleet_ready: Final = _command("ready", "Return servers to the control of their checks, on all nodes.")
fleet_maint: Final = _command("maint", "Take servers out of service, on all nodes.")
