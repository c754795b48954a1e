"""`appliance fleet support`: the archive for a ticket of each node."""

import os
import time
from pathlib import Path
from typing import Final

import click

from appliance.console.fleet.asking import Way, missing
from appliance.console.fleet.remote import RemoteCommand, why
from appliance.console.output.printing import print_json
from appliance.console.output.refusal import Refused
from appliance.model.messages.quoting import printable

_FURTHER: Final = 120.0
"""Seconds beyond those of other steps: a node collects for a minute, and sends it."""

_GZIP: Final = b"\x1f\x8b"
_ONLY_OURS: Final = 0o700


@click.command("support", epilog="Example: appliance fleet support /tmp/ticket-4711")
@click.argument("folder", required=False, type=click.Path(path_type=Path), metavar="[DIR]")
@click.option("--json", "as_json", is_flag=True, help="Print the files as JSON.")
@click.pass_obj
def fleet_support(way: Way, *, folder: Path | None, as_json: bool) -> None:
    """Fetch the archive of `appliance support` of every node into DIR, by default one named by the time.

    DIR is made, and must not be there. What a node leaves out, and why, is reported on standard error. Exits
    1 if an archive is missing.

    JSON: ok, nodes, each with name, file (or null), trouble (why there is none, or null).
    """
    fleet = way.fleet()
    place = folder or Path(f"appliance-support-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
    try:
        place.mkdir(_ONLY_OURS)
    except OSError as error:
        raise Refused(f"{place}: {error.strerror}", step="name a directory that can be made") from error
    rows = [_kept(each, place) for each in fleet.ask(["support", "-"], further=_FURTHER)]
    ok = all(row["file"] for row in rows)
    if as_json:
        print_json({"ok": ok, "nodes": rows})
    else:
        for row in rows:
            click.echo(f"{row['name']}: {row['file'] or row['trouble']}")
    if not ok:
        raise SystemExit(1)


def _kept(command: RemoteCommand, place: Path) -> dict[str, str | None]:
    """Write the archive of a node, and return what became of it."""
    for line in command.errors.splitlines():
        click.echo(f"{command.name}: {printable(line)}", err=True)
    begins = command.output.find(_GZIP)
    if command.status != 0 or begins < 0:
        trouble = missing(command) or (why(command) if command.status else "it has sent no archive")
        return {"name": command.name, "file": None, "trouble": printable(trouble)}
    path = place / f"{command.name}.tar.gz"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(command.output[begins:])
    return {"name": command.name, "file": str(path), "trouble": None}
