"""`appliance leave`: leaves virtual IPs and shared addresses to others, and waits for connections to end."""

import time
from collections import Counter
from collections.abc import Mapping
from typing import Final

import click

from appliance.console.duration_type import DurationType
from appliance.console.output.printing import print_json
from appliance.console.output.refusal import LOOK, Refused
from appliance.console.program_questions import program_status
from appliance.console.reload import ReloadUnavailable, ask_reload
from appliance.console.runtime_access import require_access
from appliance.console.vip.connections import objection, unkept
from appliance.core.announce.announce_or_withdraw import SharedState
from appliance.linger.open_connections import OpenConnections
from appliance.model.paths import Paths
from appliance.model.program_names import ANNOUNCE, LINGER, MIGRATE
from appliance.model.snapshot.linger import Linger
from appliance.net.control.control_client import status_of
from appliance.net.files import snapshots
from appliance.wire.lines.announce_status import AnnounceStatus
from appliance.wire.lines.control import Answer, bad
from appliance.wire.lines.linger_status import LingerStatus
from appliance.wire.lines.migrate_status import MigrateStatus

_TIMEOUT: Final = 120.0  # seconds: a hand-over takes a minute at most
_LOOK_AGAIN: Final = 0.5
_ANSWERED: Final = 10.0  # seconds for a status


@click.command(epilog="Example: appliance leave --wait && systemctl stop appliance")
@click.option(
    "--wait", "waits", is_flag=True, help="Wait until no connection of a virtual IP is left on this node."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=None,
    metavar="SECONDS",
    help="How long to wait; by default as long as `linger: { longest: ... }`.",
)
@click.option(
    "--within",
    type=DurationType(),
    metavar="TIME",
    help="Wait for so long, such as 10s. What is left then is named, with why it did not move.",
)
@click.option("--if-kept", "if_kept", is_flag=True, help="Change nothing if connections would end.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def leave(
    paths: Paths,
    *,
    waits: bool,
    timeout: float | None,
    within: float | None,
    if_kept: bool,
    as_json: bool,
) -> None:
    """Leave all virtual IPs and shared addresses to other nodes, until the next `appliance reload`.

    With `linger` in the configuration, connections stay on this node until they end, or with
    `linger: { sessions: ... }` until they have moved to another node, and --wait returns when none is left:
    the node can then be stopped, and nobody notices. If no other node can forward their packets to this one,
    a warning comes first. Exits 1 if the programs do not answer, or connections are left after the timeout.

    Shared addresses are announced as drained first, and then no more.

    JSON: ok, connections (that are left), errors.
    """
    require_access(paths.runtime)
    alone = _served_here_only(paths)
    if if_kept and (lost := unkept(paths) or ", ".join(alone)):
        raise Refused(f"connections of virtual IPs would end: {lost}", step="appliance leave")
    for name in alone:
        click.echo(f"No other node is known to serve {name}: clients cannot reach it then", err=True)
    if why := objection(paths):
        click.echo(f"Connections of virtual IPs end: {why}", err=True)
    try:
        answer = ask_reload(paths, _TIMEOUT, line=b"stop\n")
    except ReloadUnavailable as error:
        answer = bad(str(error))
    left = 0
    if answer.ok and (waits or within is not None):
        answer, left = _waited(paths, answer, timeout if within is None else within)
    errors = [each.message for each in answer.errors]
    if as_json:
        print_json({"ok": answer.ok, "connections": left, "errors": errors})
    elif answer.ok:
        click.echo("Virtual IPs are left to others, until the next `appliance reload`.")
    if not answer.ok:
        if as_json:
            raise SystemExit(1)
        raise Refused(
            "; ".join(errors), step=f"{LOOK}; `appliance vip status` shows which node holds the virtual IPs"
        )


def _waited(paths: Paths, answer: Answer, timeout: float | None) -> tuple[Answer, int]:
    """Wait until `linger` keeps no connection; return the message, and the number of those left."""
    accepted = snapshots.readable(paths.accepted)
    if accepted is None or accepted.linger is None:
        return answer, 0
    until = time.monotonic() + (accepted.linger.longest if timeout is None else timeout)
    open_here = OpenConnections(paths)
    while True:
        status = program_status(paths, LINGER, LingerStatus)
        shared = open_here.count(accepted.shared_addresses, forwards=bool(accepted.forwarded))
        announced = _announced(paths) if accepted.shared_ips else []
        if not status.addresses and not any(shared.values()) and not announced:
            return answer, 0
        if time.monotonic() >= until:
            left = {**{each.address: each.connections for each in status.addresses}, **shared}
            return bad(_left(left, _stay(paths, accepted.linger))), sum(left.values())
        time.sleep(_LOOK_AGAIN)


def _announced(paths: Paths) -> list[str]:
    """Return the shared IPs that routers still learn from this node."""
    status = program_status(paths, ANNOUNCE, AnnounceStatus)
    return [each.name for each in status.addresses if each.state != SharedState.WITHDRAWN]


def _served_here_only(paths: Paths) -> list[str]:
    """Return the shared IPs that no other node has, by the reports of `linger`; none without it."""
    accepted = snapshots.readable(paths.accepted)
    if accepted is None or accepted.linger is None or not accepted.shared_ips:
        return []
    status = status_of(paths.control(ANNOUNCE), AnnounceStatus, timeout=_ANSWERED)
    return [each.name for each in status.addresses if not each.others] if status else []


def _stay(paths: Paths, linger: Linger) -> str:
    """Return why sessions have not moved, "" if none should."""
    status = status_of(paths.control(MIGRATE), MigrateStatus, timeout=_ANSWERED) if linger.sessions else None
    stay: Counter[str] = Counter()
    for each in status.departures if status else ():
        stay.update(each.stay)
    troubles = {each.trouble: None for each in status.departures if each.trouble} if status else {}
    return "; ".join((*(f"{count}: {why}" for why, count in stay.items()), *troubles))


def _left(connections: Mapping[str, int], stay: str) -> str:
    kept = ", ".join(f"{address} {count}" for address, count in connections.items())
    why = f" ({stay})" if stay else ""
    return f"connections are left: {kept}{why}. They go on; see: appliance vip status, appliance sessions"
