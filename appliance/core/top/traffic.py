"""The tables of traffic: frontends, pools, servers, and how connections ended."""

from collections.abc import Iterator
from typing import Final

from appliance.core.status.status import FrontendStatus, PoolStatus, ServerStatus, Status
from appliance.core.top.rates import Rates, Sample, summed
from appliance.core.top.tables import (
    Cell,
    Column,
    Row,
    Style,
    amount,
    last_check,
    number,
    rate,
    since,
    state,
    text,
)
from appliance.model.end_reasons import EndReason

GOOD_ENDS: Final = frozenset(
    {
        EndReason.COMPLETED,
        EndReason.RESPONDED,
        EndReason.CLIENT_ABORT,
        EndReason.DENIED,
        EndReason.MAX_AGE,
        EndReason.KILLED,
        EndReason.SERVER_UP,
        EndReason.RETRIED,
        EndReason.REDISPATCHED,
        EndReason.ACCEPT_PAUSED,
    }
)
"""Ends of connections that client or operator intend, and reasons that have not ended any."""

FRONTENDS: Final = (
    Column(name="frontend", title="frontend"),
    Column(name="to", title="to", rank=4),
    Column(name="sessions", title="sess", number=True),
    Column(name="limit", title="limit", number=True, rank=5),
    Column(name="new_per_second", title="new/s", number=True),
    Column(name="failed_per_second", title="fail/s", number=True),
    Column(name="denied_per_second", title="deny/s", number=True, rank=2),
    Column(name="in_per_second", title="in/s", number=True, rank=1),
    Column(name="out_per_second", title="out/s", number=True, rank=1),
    Column(name="total", title="total", number=True, rank=3),
    Column(name="address", title="address", rank=6),
)


def frontends(sample: Sample, pool: str | None) -> Iterator[Row]:
    """Yield a row for each frontend, or for those of one pool."""
    for each in sample.status.frontends:
        if pool in (None, *each.pools):
            yield Row(key=f"{each.program}/{each.name}", cells=_frontend(each, sample.rates), pool=each.pool)


def _frontend(each: FrontendStatus, rates: Rates) -> tuple[Cell, ...]:
    def per_second(name: str) -> float | None:
        return rates.of("frontend", each.program, each.name, name)

    return (
        text(each.name, Style.BAD if each.full else Style.PLAIN),
        text(", ".join(each.pools) or f"answers {each.respond}"),
        Cell(text=str(each.current), value=each.current, style=Style.BAD if each.full else Style.PLAIN),
        number(each.max_connections),
        rate(per_second("total")),
        rate(per_second("failed"), bad=True),
        rate(per_second("denied")),
        amount(per_second("bytes_in")),
        amount(per_second("bytes_out")),
        number(each.total),
        text(" ".join(each.binds)),
    )


POOLS: Final = (
    Column(name="pool", title="pool"),
    Column(name="up", title="up", number=True),
    Column(name="servers", title="of", number=True),
    Column(name="sessions", title="sess", number=True),
    Column(name="new_per_second", title="new/s", number=True),
    Column(name="failed_per_second", title="fail/s", number=True),
    Column(name="queued", title="queue", number=True),
    Column(name="in_per_second", title="in/s", number=True, rank=1),
    Column(name="out_per_second", title="out/s", number=True, rank=1),
    Column(name="retried_per_second", title="retry/s", number=True, rank=2),
    Column(name="balance", title="balance", rank=3),
)


def pools(sample: Sample, pool: str | None) -> Iterator[Row]:
    """Yield a row for each pool, or for one."""
    for each in sample.status.pools:
        if pool in (None, each.name):
            yield Row(key=each.name, cells=_pool(each, sample.rates), pool=each.name)


def _pool(pool: PoolStatus, rates: Rates) -> tuple[Cell, ...]:
    def per_second(*names: str) -> float | None:
        return summed(
            rates.of("server", pool.name, server.name, name) for server in pool.servers for name in names
        )

    style = Style.BAD if not pool.ok else (Style.WARNING if pool.up < len(pool.servers) else Style.GOOD)
    return (
        text(pool.name),
        Cell(text=str(pool.up), value=pool.up, style=style),
        number(len(pool.servers)),
        number(pool.current),
        rate(per_second("total")),
        rate(per_second("failed"), bad=True),
        number(pool.queued, bad=True),
        amount(per_second("bytes_in")),
        amount(per_second("bytes_out")),
        rate(per_second("retried", "redispatched"), bad=True),
        text(pool.balance),
    )


SERVERS: Final = (
    Column(name="server", title="server"),
    Column(name="state", title="state"),
    Column(name="sessions", title="sess", number=True),
    Column(name="new_per_second", title="new/s", number=True),
    Column(name="failed_per_second", title="fail/s", number=True, rank=2),
    Column(name="queued", title="queue", number=True, rank=1),
    Column(name="check", title="check", rank=3),
    Column(name="in_per_second", title="in/s", number=True, rank=4),
    Column(name="out_per_second", title="out/s", number=True, rank=4),
    Column(name="for", title="for", number=True, rank=5),
    Column(name="weight", title="weight", number=True, rank=6),
    Column(name="address", title="address", rank=7),
)


def servers(sample: Sample, pool: str | None) -> Iterator[Row]:
    """Yield a row for each server, or for those of one pool."""
    for key, in_pool, server in each_server(sample.status, pool):
        yield Row(key=key, cells=_server(key, in_pool, server, sample))


def each_server(status: Status, pool: str | None) -> Iterator[tuple[str, PoolStatus, ServerStatus]]:
    """Yield each server with its full name and its pool, or those of one pool."""
    for each in status.pools:
        if pool in (None, each.name):
            yield from ((f"{each.name}/{server.name}", each, server) for server in each.servers)


def _server(key: str, pool: PoolStatus, server: ServerStatus, sample: Sample) -> tuple[Cell, ...]:
    def per_second(name: str) -> float | None:
        return sample.rates.of("server", pool.name, server.name, name)

    return (
        text(f"{key} (backup)" if server.backup else key),
        state(server.state),
        number(server.current),
        rate(per_second("total")),
        rate(per_second("failed"), bad=True),
        number(server.queued, bad=True),
        last_check(server),
        amount(per_second("bytes_in")),
        amount(per_second("bytes_out")),
        since(server.since, sample.status.at),
        number(server.effective_weight if server.effective_weight is not None else server.weight),
        text(server.address),
    )


ERRORS: Final = (
    Column(name="reason", title="reason"),
    Column(name="error", title="error"),
    Column(name="per_second", title="per second", number=True),
    Column(name="count", title="count", number=True),
)


def errors(sample: Sample) -> Iterator[Row]:
    """Yield a row for each reason for which a connection has ended."""
    for reason in EndReason:
        count = sample.status.ended.get(reason.value, 0)
        if not count:
            continue
        error = reason not in GOOD_ENDS
        style = Style.BAD if error else Style.PLAIN
        cells = (
            text(reason.value, style),
            text("error" if error else "no"),
            rate(sample.rates.of("ended", reason.value), bad=error),
            number(count),
        )
        yield Row(key=reason.value, cells=cells)


def error_rate(sample: Sample) -> float | None:
    """Return how many connections a second end abnormally, None before the second look."""
    rates = [
        sample.rates.of("ended", reason.value) or 0.0
        for reason in EndReason
        if reason not in GOOD_ENDS and reason.value in sample.status.ended
    ]
    return sum(rates) if rates or any(rate is not None for rate in sample.rates.per_second.values()) else None
