"""A status as tables for a terminal; `appliance status` and the demo's live view print the same ones."""

from collections.abc import Iterator
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from appliance.console.bgp.bgp_tables import shared_ips_table
from appliance.console.discover.discovery_tables import sources_table
from appliance.console.output.error_positions import located
from appliance.console.output.printing import columns
from appliance.console.status.fitted_table import FittedTable
from appliance.core.program_table import CONFIGURED
from appliance.core.rollout.timing import NO_DEADLINE
from appliance.core.status.quantities import duration, size
from appliance.core.status.status import (
    CheckStatus,
    FrontendStatus,
    GenerationPhase,
    GenerationStatus,
    PoolStatus,
    ProgramState,
    ProgramStatus,
    ServerStatus,
    Status,
    VirtualIpStatus,
)
from appliance.model.messages.quoting import printable
from appliance.model.server_states import ServerState

_STATE_STYLES: Final = {
    ServerState.UP: "green",
    ServerState.DOWN: "bold red",
    ServerState.DRAIN: "yellow",
    ServerState.MAINT: "blue",
    ServerState.CHECKING: "dim",
}

_REDIRECT_STYLES: Final = {"on": "green", "stands-back": "green", "failed": "bold red"}

ROUTER_STYLES: Final = {"active": "bold green", "backup": "green", "fault": "bold red"}
"""Styles of a virtual router's state; other states are transitions to one of these."""


def tables(status: Status, *, supervisorctl: str) -> RenderableType:
    """Return all tables of a status; a narrow terminal gets fewer columns.

    `supervisorctl` is the command for the appliance's own supervisord, shown in next steps for the operator.
    """
    programs = FittedTable(table=_programs(status), optional=("generation", "pid", "uptime"))
    parts: list[RenderableType] = [
        *_alarms(status, supervisorctl),
        _title(status),
        *_take_overs(status),
        programs,
    ]
    if status.virtual_ips:
        parts += [
            "",
            FittedTable(table=_virtual_ips(status), optional=("since", "id", "interface", "priority")),
        ]
    if status.shared_ips and status.bgp:
        parts += ["", shared_ips_table(status.shared_ips, status.bgp, status.at)]
    if status.nodes:
        parts += ["", FittedTable(table=_nodes(status), optional=("address", "release"))]
    if status.redirects:
        parts += ["", FittedTable(table=_redirects(status), optional=("since",))]
    if status.discovery:
        parts += ["", FittedTable(table=sources_table(status.discovery, status.at), optional=("changed",))]
    if status.pools:
        optional = ("weight", "queue", "total", "failed", "address", "since")
        parts += ["", FittedTable(table=_servers(status), optional=optional)]
    if draining := [each for each in status.generations if each.phase is GenerationPhase.DRAINING]:
        parts += ["", _draining(draining, status.at)]
    if status.frontends:
        parts += [
            "",
            FittedTable(table=_frontends(status), optional=("in", "out", "denied", "failed", "total")),
        ]
    return Group(*parts)


def summary(status: Status, *, supervisorctl: str) -> RenderableType:
    """Return the status in a few lines, for a terminal too low for the tables."""
    running = [each for each in status.programs if each.state is ProgramState.RUNNING]
    servers = [server for pool in status.pools for server in pool.servers]
    up = [server for server in servers if server.state is ServerState.UP]
    connections = sum(frontend.current for frontend in status.frontends)
    counts = (
        f"{len(running)} programs run, {len(up)} of {len(servers)} servers are up, {connections} connections"
    )
    return Group(*_alarms(status, supervisorctl), _title(status), Text(counts))


def _alarms(status: Status, supervisorctl: str) -> Iterator[RenderableType]:
    if status.degraded is not None:
        yield Text(
            "DEGRADED: the last good configuration runs, because the file has errors", style="bold red"
        )
        for error in status.degraded.errors:
            yield Text(f"  {located(error, None)}", style="red")
    shown = ""
    for problem in status.problems:
        yield Text(f"! {printable(problem)}", style="red")
        step = problem.next_step(supervisorctl=supervisorctl)
        if step != shown:
            yield Text(f"  next: {printable(step)}", style="dim")
        shown = step
    for path in status.set_aside:
        yield Text(f"  was damaged and set aside, remove it when you have looked: {path}", style="yellow")
    for said in status.left_out:
        yield Text(f"  {printable(said)}", style="yellow")


def _title(status: Status) -> Text:
    about = f"configuration {status.configuration} from {status.source}"
    name = f"{status.cluster}: " if status.cluster else ""
    version = f", version {status.version}" if status.version else ""
    said = f"{about}{version}{_data_path(status)}" if status.configuration else "no configuration"
    return Text(f"{name}{said}", style="bold", no_wrap=True, overflow="ellipsis")


def _take_overs(status: Status) -> Iterator[RenderableType]:
    """Yield when this release took over from which, and the last failed attempt to take over from it."""
    if last := status.take_overs.last:
        ago = duration(max(0.0, status.at - last.when))
        yield Text(f"taken over {ago} ago from version {printable(last.version)}, process {last.pid}")
    if failed := status.take_overs.failure:
        ago = duration(max(0.0, status.at - failed.when))
        who = f"version {printable(failed.version)}" if failed.version else "a release"
        yield Text(f"{who} could not take over {ago} ago: {printable(failed.reason)}", style="yellow")


def _data_path(status: Status) -> str:
    """Return the data path of the connections; both kinds may run while one generation replaces another."""
    kinds = {"compiled" if each.compiled else "in Python" for each in status.generations}
    return f", data path {' and '.join(sorted(kinds))}" if kinds else ""


def _programs(status: Status) -> Table:
    table = columns(
        "program", "state", "pid>", "uptime>", "generation>", "workers>", "configuration>", "reason..."
    )
    for program in status.programs:
        table.add_row(*_program_row(program))
    return table


def _program_row(program: ProgramStatus) -> tuple[RenderableType, ...]:
    idle = program.state is ProgramState.STOPPED and not program.expected
    style = "dim" if idle else ("green" if program.state is ProgramState.RUNNING else "bold red")
    return (
        program.name,
        Text(
            "not needed"
            if idle and not program.reason and program.name in CONFIGURED
            else program.state.value,
            style=style,
        ),
        _number(program.pid),
        duration(program.uptime),
        _number(program.generation),
        _number(program.workers),
        _number(program.configuration),
        Text(program.reason or "", style="red"),
    )


def _virtual_ips(status: Status) -> Table:
    table = columns(
        "virtual ip", "addresses", "interface", "id>", "state", "since>", "priority>", "active on"
    )
    for each in status.virtual_ips:
        table.add_row(*_virtual_ip_row(each, status.at))
    return table


def _virtual_ip_row(each: VirtualIpStatus, now: float) -> tuple[RenderableType, ...]:
    state = each.state or "unknown"
    away = " (moved away)" if each.yielded else ""
    return (
        each.name,
        Text(" ".join(each.addresses)),
        Text(each.interface),
        _number(each.router_id),
        Text(f"{state}{away}", style=ROUTER_STYLES.get(state, "yellow")),
        duration(now - each.since) if each.since else "-",
        _number(each.priority),
        Text("this node" if each.active else each.active_peer or "-"),
    )


def _nodes(status: Status) -> Table:
    table = columns("other node", "address", "release", "configuration", "servers", "heard>")
    for each in status.nodes:
        differs = each.differs_since
        same = "as here" if each.configuration else "unknown"
        configuration = same if differs is None else f"another for {duration(status.at - differs)}"
        judged = f"{len(each.judged)} judged differently" if each.judged else "as here"
        table.add_row(
            each.name,
            Text(each.address),
            Text(each.release or "-"),
            Text("-" if each.silent else configuration, style="" if differs is None else "bold red"),
            Text("-" if each.silent else judged, style="bold red" if each.judged else ""),
            Text(f"{duration(status.at - each.heard_at)} ago", style="bold red" if each.silent else ""),
        )
    return table


def _redirects(status: Status) -> Table:
    table = columns("redirect", "from", "state", "since>", "reason...")
    for each in status.redirects:
        state = each.state or "unknown"
        table.add_row(
            each.name,
            Text(" ".join(each.sources)),
            Text(state, style=_REDIRECT_STYLES.get(state, "yellow")),
            duration(status.at - each.since) if each.since else "-",
            Text(printable(each.reason or "")),
        )
    return table


def _frontends(status: Status) -> Table:
    table = columns("frontend", "address", "to", "current>", "total>", "denied>", "failed>", "in>", "out>")
    for frontend in status.frontends:
        table.add_row(*_frontend_row(frontend))
    return table


def _frontend_row(frontend: FrontendStatus) -> tuple[RenderableType, ...]:
    return (
        frontend.name,
        Text(" ".join(frontend.binds)),
        ", ".join(frontend.pools) or f"answers {frontend.respond}",
        Text(_connections(frontend), style="red" if frontend.full else ""),
        _number(frontend.total),
        _number(frontend.denied),
        _number(frontend.failed),
        size(frontend.bytes_in),
        size(frontend.bytes_out),
    )


def _connections(frontend: FrontendStatus) -> str:
    return f"{frontend.current} of {frontend.max_connections}" if frontend.full else str(frontend.current)


def _servers(status: Status) -> Table:
    table = columns(
        "server", "address", "state", "since>", "last check", "weight>", "current>", "total>", "failed>",
        "queue>",
    )  # fmt: skip
    for pool in status.pools:
        for server in pool.servers:
            table.add_row(*_server_row(pool, server, status.at))
    return table


def _server_row(pool: PoolStatus, server: ServerStatus, now: float) -> tuple[RenderableType, ...]:
    return (
        f"{pool.name}/{server.name}" + (" (backup)" if server.backup else ""),
        Text(server.address),
        Text(server.state.value, style=_STATE_STYLES[server.state]) if server.state else "unknown",
        duration(now - server.since) if server.since else "-",
        Text(_check(server.check)),
        _weight(server),
        _number(server.current),
        _number(server.total),
        _number(server.failed),
        _number(server.queued),
    )


def _check(check: CheckStatus | None) -> str:
    if check is None:
        return "-"
    result = f"{check.result}/{check.status}" if check.status else str(check.result)
    return " ".join(filter(None, (result, duration(check.duration), check.detail)))


def _weight(server: ServerStatus) -> str:
    effective = server.effective_weight
    if server.operator_weight is not None and effective is not None:
        return f"{effective:.3g} of {server.weight}, set to {server.operator_weight}"
    if effective is None or effective == server.weight:
        return str(server.weight)
    return f"{effective:.3g} of {server.weight}"


def _draining(generations: list[GenerationStatus], now: float) -> Table:
    table = columns("draining", "generation>", "sessions>", "cut in>", "still holds...")
    for each in generations:
        left = _cut_in(each.drain_deadline, now)
        holds = ", ".join(f"{held.pool}/{held.server} {held.connections}" for held in each.holds)
        table.add_row(each.program, str(each.generation), str(each.sessions), left, Text(holds))
    return table


def _cut_in(deadline: float | None, now: float) -> str:
    if deadline is None:
        return "-"
    return "never" if deadline - now > NO_DEADLINE / 2 else duration(max(0.0, deadline - now))


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
