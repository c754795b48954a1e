"""`appliance events`: past events with their causes, including those before the last restart."""

import sys
import time
from datetime import datetime
from typing import Final

import click
import msgspec

from appliance.console.duration_type import DurationType
from appliance.console.output.printing import print_json, print_rows
from appliance.console.runtime_access import require_access
from appliance.model.operator_events import OperatorEvent
from appliance.model.paths import Paths
from appliance.net.events.event_follower import EventFollower
from appliance.net.events.kept_events import events_since

_LOOK: Final = 0.2  # seconds between two reads of --follow
_LIMIT: Final = 100
_COLUMNS: Final = ("when", "event", "subject", "change", "cause", "detail")


@click.command(epilog="Example: appliance events --since 1h --follow")
@click.option("--since", type=DurationType(), metavar="TIME", help="Only events of the last 30m, 12h, 2d ...")
@click.option(
    "--limit", type=click.IntRange(min=1), default=_LIMIT, show_default=True, help="Number of newest events."
)
@click.option("--follow", is_flag=True, help="Print new events as they happen, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; with --follow a line for each event.")
@click.pass_obj
def events(paths: Paths, *, since: float | None, limit: int, follow: bool, as_json: bool) -> None:
    """Show changes of state with their causes: servers, pools, virtual IPs, reloads, programs.

    They are kept over restarts, in two files of limited size in the state directory. JSON: a list of when
    (Unix seconds), kind, subject, program, before, after, cause, detail, id.
    """
    require_access(paths.runtime)
    begin = 0.0 if since is None else time.time() - since
    found = events_since(paths, begin, limit=limit)
    if not follow:
        _print(found, as_json=as_json)
        return
    shown = EventFollower(paths.runtime, known=[each.id for each in events_since(paths)])
    _print_lines(found, as_json=as_json)
    while True:
        _print_lines(shown.new(time.monotonic()), as_json=as_json)
        time.sleep(_LOOK)


def _print(found: list[OperatorEvent], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    elif found:
        print_rows(_COLUMNS, list(map(_row, found)))
    else:
        click.echo("nothing happened; a longer time: --since 7d", err=True)


def _print_lines(found: list[OperatorEvent], *, as_json: bool) -> None:
    for each in found:
        click.echo(msgspec.json.encode(each) if as_json else "  ".join(filter(None, _row(each))))
    sys.stdout.flush()


def _row(each: OperatorEvent) -> tuple[str, ...]:
    when = datetime.fromtimestamp(each.when).astimezone().isoformat(" ", "seconds")
    change = f"{each.before} -> {each.after}" if each.before and each.after else each.after
    return (when, each.kind.value, each.subject, change, each.cause, each.detail)
