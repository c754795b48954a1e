"""`appliance sessions`: lists and ends the connections of all workers, draining ones too, and of the kernel.

It asks the workers themselves, not their masters, so it works while masters are down; and `forward` for
connections that the kernel forwards.
"""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Final

import click

from appliance.console.completion.names import frontend_names, server_names
from appliance.console.output.printing import print_json, print_rows
from appliance.console.output.refusal import LOOK, Refused
from appliance.console.program_questions import at_once
from appliance.console.runtime_access import require_access
from appliance.core.status.quantities import duration, size
from appliance.model.paths import Paths
from appliance.model.program_names import FORWARD
from appliance.net.control.control_client import ControlUnavailable, ask
from appliance.wire.lines import listed_session
from appliance.wire.lines.control import Answer, Question
from appliance.wire.lines.listed_session import ListedSession

_TIMEOUT: Final = 10.0

Network = IPv4Network | IPv6Network


class NetworkType(click.ParamType[Network]):
    """An address, or a network in prefix notation."""

    name = "ADDR/NET"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Network:
        """Return the network; an address alone is a network of one."""
        try:
            return ip_network(str(value), strict=False)
        except ValueError:
            self.fail(f"{value!r} is neither an address nor a network", param, ctx)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """The sessions to list or end; None means any."""

    server: str | None = None
    frontend: str | None = None
    source: Network | None = None

    def takes(self, session: ListedSession) -> bool:
        """Return whether the filter matches a session."""
        return (
            self.server in (None, session.server)
            and self.frontend in (None, session.frontend)
            and (self.source is None or _inside(session.client, self.source))
        )


def _inside(client: str, network: Network) -> bool:
    address = ip_address(client.rpartition(":")[0].strip("[]").partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped and network.version == 4:
        return address.ipv4_mapped in network
    return address in network


_server = click.option(
    "--server", metavar="POOL/SERVER", help="Only connections to this server.", shell_complete=server_names
)
_source = click.option("--source", type=NetworkType(), help="Only connections of this client or network.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(
    invoke_without_command=True,
    epilog="Example: appliance sessions --server masters/master-1 --source 10.0.0.0/24",
)
@_server
@click.option(
    "--frontend", metavar="NAME", help="Only connections of this frontend.", shell_complete=frontend_names
)
@_source
@_json
@click.pass_context
def sessions(
    ctx: click.Context, *, server: str | None, frontend: str | None, source: Network | None, as_json: bool
) -> None:
    """List the connections, or end some of them with `sessions kill`.

    JSON: a list of id, frontend, client, server, age, idle, bytes_in, bytes_out, phase; seconds and bytes.
    For a connection that the kernel forwards, values that the kernel does not report are null, and remaining
    is the seconds until the kernel forgets it if it stays idle.
    """
    if ctx.invoked_subcommand is not None:
        return
    wanted = SessionFilter(server=server, frontend=frontend, source=source)
    found = [session for session in _listed(_paths(ctx)) if wanted.takes(session)]
    if as_json:
        print_json(found)
        return
    print_rows(_COLUMNS, list(map(_row, found)))


@sessions.command(epilog="Example: appliance sessions kill --server masters/master-1")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@_server
@_source
@_json
@click.pass_context
def kill(
    ctx: click.Context, *, ids: tuple[str, ...], server: str | None, source: Network | None, as_json: bool
) -> None:
    """End connections: by ID, all to a server, or all of a client or network.

    Prints how many were ended; exits 1 if there were none. JSON: killed.
    """
    if sum(map(bool, (ids, server, source))) != 1:
        raise click.UsageError("Give one of ID, --server and --source.")
    killed = sum(_killed(_paths(ctx), question) for question in _questions(ids, server, source))
    if as_json:
        print_json({"killed": killed})
    else:
        click.echo(f"{killed} killed")
    if not killed:
        raise SystemExit(1)


def _questions(ids: Iterable[str], server: str | None, source: Network | None) -> Iterator[Question]:
    yield from (Question(command="kill", values={"id": each}) for each in ids)
    if server:
        yield Question(command="kill", values={"server": server})
    if source:
        yield Question(command="kill", values={"source": str(source)})


def _killed(paths: Paths, question: Question) -> int:
    counts = (answer.values.get("killed") for answer in _ask_all(paths, question))
    return sum(count for count in counts if isinstance(count, int))


def _listed(paths: Paths) -> list[ListedSession]:
    found: list[ListedSession] = []
    for answer in _ask_all(paths, Question(command="sessions")):
        found += listed_session.decode(answer)
        if more := listed_session.left_out(answer):
            click.echo(f"{more} more are not listed: too many for an answer", err=True)
    return sorted(found, key=lambda session: session.age or 0.0, reverse=True)


def _ask_all(paths: Paths, question: Question) -> list[Answer]:
    """Ask all workers and `forward` at once. Missing ones are skipped; an error is raised."""
    require_access(paths.runtime)
    sockets = [*sorted(paths.runtime.glob("worker-*.control")), paths.control(FORWARD)]
    asked = at_once(partial(_asked, path, question) for path in sockets)
    answers = [answer for answer in asked if answer is not None]
    if not answers:
        raise Refused(
            f"no proxy worker answers below {paths.runtime}. Is the appliance running, and is this its"
            " --runtime-dir?",
            step=LOOK,
        )
    refusals = [problem.message for answer in answers for problem in answer.errors]
    if refusals:
        raise Refused("; ".join(refusals), step="`appliance sessions` lists what can be named")
    return answers


def _asked(path: Path, question: Question) -> Answer | None:
    with contextlib.suppress(ControlUnavailable):
        return ask(path, question, timeout=_TIMEOUT)
    return None


def _paths(ctx: click.Context) -> Paths:
    return ctx.ensure_object(Paths)


_COLUMNS: Final = ("id", "frontend", "client", "server", "phase", "age>", "idle>", "in>", "out>")


def _row(each: ListedSession) -> tuple[str, ...]:
    times = (duration(each.age), duration(each.idle))
    about = (each.id, each.frontend, each.client, each.server or "-", each.phase)
    return (*about, *times, size(each.bytes_in), size(each.bytes_out))
