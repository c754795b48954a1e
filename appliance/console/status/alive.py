"""`appliance alive`: the health check of a container, without a shell or curl."""

import http.client
from collections.abc import Iterator
from typing import Final

import click

from appliance.console.output.refusal import LOOK, Refused
from appliance.console.program_questions import ask_program
from appliance.console.runtime_access import require_access
from appliance.core.program_table import needed
from appliance.model.paths import Paths
from appliance.model.program_names import STATS
from appliance.model.snapshot.frontends import Frontend
from appliance.model.snapshot.snapshot import Snapshot, SnapshotError
from appliance.net.files import snapshots
from appliance.wire.lines.control import Question

_READY: Final = "/haproxy_ready"
_LOOPBACK: Final = {"::": "localhost", "0.0.0.0": "127.0.0.1"}  # noqa: S104  # what one connects to


@click.command(epilog="Example: appliance alive || appliance status")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for an answer.",
)
@click.pass_obj
def alive(paths: Paths, *, timeout: float) -> None:
    """Report by the exit code whether the appliance serves: 0 or 1.

    Requests the endpoint of `respond: /haproxy_ready` over HTTP, or any other endpoint that needs no pool. If
    there is none, it asks each program. Servers that are down are no reason to restart the appliance and do
    not matter here, nor does a first configuration that is still awaited.
    """
    require_access(paths.runtime)
    snapshot = _accepted(paths)
    if snapshot.awaited:
        ask_program(paths.control("reload"), Question(command="status"), timeout=timeout)
        click.echo("waits for its first configuration")
        return
    endpoint = next(_endpoints(snapshot), None)
    if endpoint is None:
        for program in needed(snapshot):
            if program == STATS:
                continue  # it serves nobody, and is no reason to restart programs that do
            ask_program(paths.control(program), Question(command="status"), timeout=timeout)
        click.echo("every program answers")
        return
    click.echo(_get(endpoint, timeout))


def _accepted(paths: Paths) -> Snapshot:
    try:
        accepted = snapshots.read(paths.accepted)
    except SnapshotError as error:
        raise Refused(str(error), step=LOOK) from error
    if accepted is None:
        raise Refused(f"{paths.accepted}: not there. Is the appliance running?", step=LOOK)
    return accepted


def _endpoints(snapshot: Snapshot) -> Iterator[Frontend]:
    """Yield the frontends with `respond` whose answer depends on no pool, /haproxy_ready first."""
    frontends = [each for group in snapshot.groups for each in group.frontends]
    candidates = [each for each in frontends if each.respond and each.needs is None]
    yield from sorted(candidates, key=lambda each: each.respond != _READY)


def _get(frontend: Frontend, timeout: float) -> str:
    """Return a sentence about the answer 200; raises ClickException for any other, or none."""
    bind = frontend.binds[0]
    connection = http.client.HTTPConnection(_LOOPBACK.get(bind.host, bind.host), bind.port, timeout=timeout)
    try:
        connection.request("GET", frontend.respond or "/")
        status = connection.getresponse().status
    except OSError as error:
        raise Refused(f"{frontend.name} at {bind}: {error.strerror or error}", step=_why(frontend)) from error
    except http.client.HTTPException as error:
        raise Refused(f"{frontend.name} at {bind}: {error}", step=_why(frontend)) from error
    finally:
        connection.close()
    if status != http.client.OK:
        raise Refused(f"{frontend.name} at {bind}: answers {status}", step=_why(frontend))
    return f"{frontend.name} at {bind}: answers {status}"


def _why(frontend: Frontend) -> str:
    return f"`appliance why {frontend.name} --kind frontend`"
