"""`appliance drain`, `ready`, `maint` and `weight`: operators' states of servers, kept across restarts."""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Final

import click

from appliance.console.completion.names import server_names
from appliance.console.output.printing import print_json
from appliance.console.output.refusal import LOOK, Refused
from appliance.console.program_questions import ask_program
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import SnapshotError
from appliance.net.files import snapshots
from appliance.wire.lines.control import Answer, Question

_TIMEOUT: Final = 10.0


def _command(name: str, effect: str, explanation: str) -> click.Command:
    """Return the command that puts servers into the state `name`."""

    @click.command(name, help=explanation, epilog=f"Example: appliance {name} masters/master-1")
    @click.argument("servers", nargs=-1, required=True, metavar="POOL/SERVER...", shell_complete=server_names)
    @click.option("--json", "as_json", is_flag=True, help='Print a list of {"pool", "server", "state"}.')
    @click.pass_obj
    def command(paths: Paths, *, servers: tuple[str, ...], as_json: bool) -> None:
        wanted = [_named(each, _known(paths)) for each in dict.fromkeys(servers)]
        for pool, server in wanted:
            _set_state(paths, pool=pool, server=server, state=name)
            if not as_json:
                click.echo(f"{pool}/{server}: {effect}")
        if as_json:
            print_json([{"pool": pool, "server": server, "state": name} for pool, server in wanted])

    return command


@click.command("weight", epilog="Example: appliance weight masters/master-1 50%")
@click.argument("servers", nargs=-1, required=True, metavar="POOL/SERVER...", shell_complete=server_names)
@click.argument("weight", metavar="N|N%")
@click.option("--json", "as_json", is_flag=True, help='Print a list of {"pool", "server", "weight"}.')
@click.pass_obj
def weight(paths: Paths, *, servers: tuple[str, ...], weight: str, as_json: bool) -> None:
    """Set a weight for servers in place of the configured one.

    N is 0 (no new connections) to 256, N% a part of the configured weight; 100% restores the configured
    weight. Survives reloads and restarts.
    """
    wanted = [_named(each, _known(paths)) for each in dict.fromkeys(servers)]
    for pool, server in wanted:
        values = {"pool": pool, "server": server, "weight": weight}
        configured = _ask(paths, Question(command="set-weight", values=values)).values.get("configured")
        if not as_json:
            click.echo(f"{pool}/{server}: weight {weight}, but the configuration has {configured}")
    if as_json:
        print_json([{"pool": pool, "server": server, "weight": weight} for pool, server in wanted])


def _set_state(paths: Paths, *, pool: str, server: str, state: str) -> None:
    _ask(paths, Question(command="set-state", values={"pool": pool, "server": server, "state": state}))


def _ask(paths: Paths, question: Question) -> Answer:
    """Send the change to `health`; raises ClickException."""
    answer = ask_program(paths.control("health"), question, timeout=_TIMEOUT)
    if not answer.ok:
        raise Refused(answer.reason, step=f"name an existing server and a known value: {LOOK}")
    if not_kept := answer.values.get("not_kept"):
        click.echo(f"warning: this is forgotten when the program health restarts: {not_kept}", err=True)
    return answer


def _known(paths: Paths) -> frozenset[str] | None:
    """Return every POOL/SERVER, None if the snapshot cannot be read: then `health` checks the name."""
    try:
        snapshot = snapshots.read(paths.accepted)
    except SnapshotError:
        return None
    if snapshot is None:
        return None
    return frozenset(f"{pool.name}/{server.name}" for pool in snapshot.pools for server in pool.servers)


def _named(text: str, known: frozenset[str] | None) -> tuple[str, str]:
    pool, slash, server = text.partition("/")
    if known is not None and text not in known:
        raise click.BadParameter(
            f"there is no server {text!r}.{_hint(text, known)}", param_hint="POOL/SERVER"
        )
    if not (pool and slash and server):
        raise click.BadParameter(f"{text!r} is not of the form POOL/SERVER.", param_hint="POOL/SERVER")
    return pool, server


def _hint(text: str, known: frozenset[str]) -> str:
    same_server = sorted(name for name in known if name.partition("/")[2] == text)
    near = same_server or get_close_matches(text, sorted(known), n=3)
    return f" Did you mean {' or '.join(near)}?" if near else " See: appliance status"


drain: Final[Callable[..., object]] = _command(
    "drain",
    "drain: no new connections, those it has go on",
    "Send servers no new connections; open ones continue. Survives reloads and restarts.",
)
ready: Final[Callable[..., object]] = _command(
    "ready",
    "ready: its checks decide",
    "Take servers out of drain or maint: their checks decide again.",
)
maint: Final[Callable[..., object]] = _command(
    "maint",
    "maint: out of service",
    "Take servers out of service. Their sessions are closed if the pool has on_down: "
    "close-sessions. Survives reloads and restarts.",
)
