"""`appliance vip`: the state of this node's virtual IPs, and planned hand-overs."""

import time
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

import click
import msgspec

from appliance.console.completion.names import virtual_ip_names
from appliance.console.output.printing import print_json, print_table
from appliance.console.output.refusal import Refused
from appliance.console.program_questions import ask_program, decoded_status
from appliance.console.vip.connections import lingering, objection
from appliance.console.vip.left_connections import LeftConnections
from appliance.console.vip.vip_tables import vip_tables
from appliance.core.status.problems import troubles
from appliance.model.paths import Paths
from appliance.model.program_names import MIGRATE, VRRP
from appliance.model.snapshot.snapshot import Snapshot, SnapshotError
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.control.control_client import status_of
from appliance.net.files import snapshots
from appliance.wire.lines.control import Answer, Question
from appliance.wire.lines.migrate_status import MigrateStatus
from appliance.wire.lines.vrrp_status import VrrpStatus

_TIMEOUT: Final = 10.0
_WHY: Final = "`appliance vip status` shows who is active, `appliance why NAME` shows why"
_MARGIN: Final = 10.0
"""Seconds beyond the longest hand-over for which `move` waits for its answer."""

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(epilog="Example: appliance vip status && appliance vip move api")
def vip() -> None:
    """Show the virtual IPs of this node, move one away, or take part again."""


@vip.command("status", epilog="Example: appliance vip status api --json | jq '.routers[0].state'")
@click.argument("name", metavar="[NAME]", required=False, shell_complete=virtual_ip_names)
@_json
@click.pass_obj
def vip_status(paths: Paths, *, name: str | None, as_json: bool) -> None:
    """Show states, priorities with their parts, the other routers, timers and transitions.

    Exits 1 for a fault, a conflict, two active routers, a missing capability, or no answer; else 0.

    JSON: missing (capabilities), realtime, late_wakeups, latest_wakeup_s, and routers, each with name, state,
    since, priority, base, parts, fault_reasons, addresses, held, heard, timers, transitions, conflicts,
    routes, route_troubles, yielded, counters, drops; connections (open at addresses that have moved: address,
    node, connections, left_at) and sessions (address, node, moved, stay by reason, trouble). Times are Unix
    seconds, durations seconds.
    """
    configured = _configured(paths)
    if name is not None:
        _check(name, configured)
    if not as_json and name is None and _has_shared_ips(paths):
        click.echo("Shared IPs: `appliance bgp status` shows them.")
    if configured == ():
        print_json({"missing": [], "routers": []}) if as_json else click.echo(
            "No virtual IPs are configured."
        )
        return
    answer = ask_program(paths.control(VRRP), Question(command="status"), timeout=_TIMEOUT)
    status = decoded_status(paths, VRRP, answer, VrrpStatus)
    shown = replace(status, routers=tuple(each for each in status.routers if name in (None, each.name)))
    wrong = tuple(troubles(shown))
    migrating = status_of(paths.control(MIGRATE), MigrateStatus, timeout=_TIMEOUT)
    left = LeftConnections(lingering(paths), migrating, name=name)
    if as_json:
        print_json({**_values(answer, name), **left.values()})
    else:
        print_table(vip_tables(shown, left, wrong, time.time()))
    if wrong:
        raise SystemExit(1)


@vip.command(epilog="Example: appliance vip move api")
@click.argument("name", metavar="NAME", shell_complete=virtual_ip_names)
@click.option("--force", "forced", is_flag=True, help="Move it even if `linger` cannot keep its connections.")
@_json
@click.pass_obj
def move(paths: Paths, *, name: str, forced: bool, as_json: bool) -> None:
    """Hand a virtual IP and its sync group over to another node, without a gap.

    This node serves until the successor advertises. Afterwards it does not take the virtual IP back, whatever
    its priority, until the successor is gone or `appliance vip reclaim` is run. Exits 1 if this node is not
    active, if `linger` is configured but connections would end nevertheless, or if no node has taken over in
    time; nothing has changed then.

    JSON: name, ok, successor, errors.
    """
    configured = _configured(paths)
    _check(name, configured)
    patience = max((each.hand_over for each in configured or ()), default=0.0) + _MARGIN
    if why := "" if forced else objection(paths, name):
        message = f"connections of {name} would end: {why}"
        if as_json:
            print_json({"name": name, "ok": False, "successor": None, "errors": [message]})
            raise SystemExit(1)
        raise Refused(message, step="fix that, or `appliance vip move --force NAME`")
    answer = _told(paths, "move", name, timeout=patience)
    successor = answer.values.get("successor")
    if as_json:
        print_json({"name": name, "ok": answer.ok, "successor": successor, "errors": _messages(answer)})
    elif answer.ok:
        click.echo(f"{name}: handed over to {successor or 'another router'}")
    _end(answer, quietly=as_json)


@vip.command(epilog="Example: appliance vip reclaim api")
@click.argument("name", metavar="NAME", shell_complete=virtual_ip_names)
@_json
@click.pass_obj
def reclaim(paths: Paths, *, name: str, as_json: bool) -> None:
    """Forget that a virtual IP was moved away: priorities decide again.

    JSON: name, ok, errors.
    """
    _check(name, _configured(paths))
    answer = _told(paths, "reclaim", name, timeout=_TIMEOUT)
    if as_json:
        print_json({"name": name, "ok": answer.ok, "errors": _messages(answer)})
    elif answer.ok:
        was_moved = answer.values.get("changed", True)
        click.echo(f"{name}: {'priorities decide again' if was_moved else 'was not moved away'}")
    _end(answer, quietly=as_json)


def _told(paths: Paths, command: str, name: str, *, timeout: float) -> Answer:
    return ask_program(paths.control(VRRP), Question(command=command, values={"name": name}), timeout=timeout)


def _end(answer: Answer, *, quietly: bool) -> None:
    if answer.ok:
        return
    if quietly:
        raise SystemExit(1)
    raise Refused(answer.reason, step=_WHY)


def _messages(answer: Answer) -> list[str]:
    return [problem.message for problem in answer.errors]


def _configured(paths: Paths) -> tuple[VirtualRouter, ...] | None:
    """Return the virtual routers of the accepted configuration, None if it cannot be read."""
    accepted = _accepted(paths)
    return accepted.virtual_routers if accepted else None


def _has_shared_ips(paths: Paths) -> bool:
    accepted = _accepted(paths)
    return accepted is not None and bool(accepted.shared_ips)


def _accepted(paths: Paths) -> Snapshot | None:
    try:
        return snapshots.for_readers(paths)
    except SnapshotError:
        return None


def _check(name: str, configured: tuple[VirtualRouter, ...] | None) -> None:
    names = [each.name for each in configured or ()]
    if configured is None or name in names:
        return
    near = get_close_matches(name, names, n=1) or names
    hint = f" Did you mean {' or '.join(near)}?" if near else " None is configured."
    raise click.BadParameter(f"there is no virtual IP {name!r}.{hint}", param_hint="NAME")


def _values(answer: Answer, name: str | None) -> dict[str, object]:
    """Return the answer unchanged, but with only the requested virtual IP."""
    routers = msgspec.convert(answer.values.get("routers", []), list[dict[str, object]])
    return {**answer.values, "routers": [each for each in routers if name in (None, each.get("name"))]}
