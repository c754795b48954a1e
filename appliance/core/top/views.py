"""The views of `appliance top`, and the table of each."""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final

from appliance.core.status.status import ProgramState, ProgramStatus, VirtualIpStatus
from appliance.core.top.rates import Sample
from appliance.core.top.tables import (
    Cell,
    Column,
    Row,
    Style,
    Table,
    last_check,
    number,
    rate,
    seconds,
    since,
    state,
    text,
)
from appliance.core.top.traffic import (
    ERRORS,
    FRONTENDS,
    POOLS,
    SERVERS,
    each_server,
    errors,
    frontends,
    pools,
    servers,
)

_VIP_STATES: Final = {"active": Style.GOOD, "backup": Style.GOOD, "fault": Style.BAD}

CHECKS: Final = (
    Column(name="server", title="server"),
    Column(name="state", title="state"),
    Column(name="check", title="last check"),
    Column(name="took", title="took", number=True),
    Column(name="ago", title="ago", number=True, rank=1),
    Column(name="streak", title="in a row", number=True, rank=2),
    Column(name="failed_per_second", title="fail/s", number=True, rank=4),
    Column(name="failed", title="failed", number=True, rank=1),
    Column(name="downs", title="downs", number=True, rank=1),
    Column(name="detail", title="detail", rank=5),
)


def checks(sample: Sample, pool: str | None) -> Iterator[Row]:
    """Yield a row for the checks of each server, or of those of one pool."""
    for key, in_pool, server in each_server(sample.status, pool):
        check, now = server.check, sample.status.at
        yield Row(
            key=key,
            cells=(
                text(key),
                state(server.state),
                last_check(server),
                seconds(check.duration if check else None),
                since(check.ended_at if check else None, now),
                number(check.streak if check else None),
                rate(sample.rates.of("server", in_pool.name, server.name, "checks_failed"), bad=True),
                number(check.failed if check else None),
                number(server.downs),
                text(check.detail if check else ""),
            ),
        )


VIPS: Final = (
    Column(name="vip", title="vip"),
    Column(name="state", title="state"),
    Column(name="for", title="for", number=True, rank=1),
    Column(name="active_on", title="active on"),
    Column(name="priority", title="prio", number=True),
    Column(name="id", title="id", number=True, rank=3),
    Column(name="interface", title="interface", rank=2),
    Column(name="addresses", title="addresses", rank=4),
)


def virtual_ips(sample: Sample) -> Iterator[Row]:
    """Yield a row for each virtual IP."""
    for each in sample.status.virtual_ips:
        yield Row(key=each.name, cells=_vip(each, sample.status.at))


def _vip(each: VirtualIpStatus, now: float) -> tuple[Cell, ...]:
    state = each.state or "unknown"
    return (
        text(each.name),
        text(f"{state} (moved)" if each.yielded else state, _VIP_STATES.get(state, Style.WARNING)),
        since(each.since, now),
        text("this node" if each.active else each.active_peer or ""),
        number(each.priority),
        number(each.router_id),
        text(each.interface),
        text(" ".join(each.addresses)),
    )


PROGRAMS: Final = (
    Column(name="program", title="program"),
    Column(name="state", title="state"),
    Column(name="for", title="up for", number=True, rank=1),
    Column(name="pid", title="pid", number=True, rank=2),
    Column(name="workers", title="workers", number=True, rank=1),
    Column(name="generation", title="generation", number=True, rank=3),
    Column(name="configuration", title="configuration", number=True, rank=3),
    Column(name="reason", title="reason", rank=4),
)


def programs(sample: Sample) -> Iterator[Row]:
    """Yield a row for each program."""
    for each in sample.status.programs:
        yield Row(key=each.name, cells=_program(each))


def _program(each: ProgramStatus) -> tuple[Cell, ...]:
    running = each.state is ProgramState.RUNNING
    style = Style.GOOD if running and each.ok else (Style.FAINT if each.ok else Style.BAD)
    return (
        text(each.name),
        text("not needed" if each.ok and not running else each.state.value, style),
        seconds(each.uptime),
        number(each.pid),
        number(each.workers),
        number(each.generation),
        number(each.configuration),
        text(each.reason or ""),
    )


class View(StrEnum):
    """The views in the order of their numbers."""

    FRONTENDS = "frontends"
    POOLS = "pools"
    SERVERS = "servers"
    CHECKS = "checks"
    ERRORS = "errors"
    VIPS = "vips"
    PROGRAMS = "programs"


_Rows = Callable[[Sample, str | None], Iterator[Row]]

_TABLES: Final[Mapping[View, tuple[tuple[Column, ...], _Rows]]] = {
    View.FRONTENDS: (FRONTENDS, frontends),
    View.POOLS: (POOLS, pools),
    View.SERVERS: (SERVERS, servers),
    View.CHECKS: (CHECKS, checks),
    View.ERRORS: (ERRORS, lambda sample, _: errors(sample)),
    View.VIPS: (VIPS, lambda sample, _: virtual_ips(sample)),
    View.PROGRAMS: (PROGRAMS, lambda sample, _: programs(sample)),
}


# Each key draws the screen again, mostly for the same look.
@lru_cache(maxsize=4)
def table(view: View, sample: Sample, *, pool: str | None = None) -> Table:
    """Return the table of a view; `pool` limits the rows of pools to that one."""
    columns, rows = _TABLES[view]
    return Table(columns=columns, rows=tuple(rows(sample, pool)))


def column_names(view: View) -> tuple[str, ...]:
    """Return the names of a view's columns, as JSON and `--sort` have them."""
    return tuple(each.name for each in _TABLES[view][0])
