"""The virtual IPs as tables for a terminal."""

from collections.abc import Iterable, Iterator
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from appliance.console.output.printing import columns
from appliance.console.status.status_tables import ROUTER_STYLES
from appliance.console.vip.left_connections import LeftConnections
from appliance.core.status.quantities import duration
from appliance.wire.lines.linger_status import KeeperStatus, KeptStatus
from appliance.wire.lines.migrate_status import DepartureStatus
from appliance.wire.lines.vrrp_status import PriorityPartStatus, RouterStatus, VrrpStatus

_TRANSITIONS: Final = 5
"""Number of latest transitions shown; the JSON has more."""


def vip_tables(status: VrrpStatus, left: LeftConnections, wrong: Iterable[str], now: float) -> RenderableType:
    """Return everything about the virtual IPs at `now`, Unix seconds, below the sentences in `wrong`."""
    parts: list[RenderableType] = [Text(f"! {each}", style="red") for each in wrong]
    if status.late_wakeups:
        late = (
            f"vrrp woke up late {status.late_wakeups} times, by {duration(status.latest_wakeup_s)} at worst"
        )
        parts.append(Text(late, style="yellow"))
    for router in status.routers:
        parts += [*([""] if parts else []), *_router(router, now, left)]
    # After `leave` `vrrp` has no routers, and shared addresses never have one.
    others = left.routers - {each.name for each in status.routers}
    parts += _with_rows(_kept(left.kept(others), now), _moved(left.moved(others)))
    return Group(*parts)


def _with_rows(*tables: Table) -> Iterator[Table]:
    return (each for each in tables if each.row_count)


def _router(router: RouterStatus, now: float, left: LeftConnections) -> Iterator[RenderableType]:
    yield _title(router, now)
    yield _facts(router, now)
    kept, moved = _kept(left.kept({router.name}), now), _moved(left.moved({router.name}))
    yield from _with_rows(_parts(router), _heard(router, now), kept, moved, _transitions(router, now))


def _title(router: RouterStatus, now: float) -> Text:
    since = f" for {duration(now - router.since)}" if router.since else ""
    state = Text(router.state or "unknown", style=ROUTER_STYLES.get(router.state, "yellow"))
    return Text.assemble((router.name, "bold"), ": ", state, f"{since}, {' '.join(router.addresses)}")


def _facts(router: RouterStatus, now: float) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, fact in _lines(router, now):
        table.add_row(name, Text(fact))
    return table


def _lines(router: RouterStatus, now: float) -> Iterator[tuple[str, str]]:
    group = f", sync group {router.sync_group}" if router.sync_group else ""
    yield "router", f"id {router.router_id} on {router.interface}, version {router.version}{group}"
    yield "priority", _sum(router)
    if router.routes:
        yield "routes", "; ".join(router.routes)
    timers = router.timers
    due = "" if timers.deadline_in is None else f", due in {duration(timers.deadline_in)}"
    down = f"dead after {_exact(timers.down_interval)}, skew {_exact(timers.skew)}"
    yield "timers", f"advert {_exact(timers.advert)}, {down}{due}"
    counts = {**router.counters, **{f"dropped {reason}": count for reason, count in router.drops.items()}}
    named = [f"{name.replace('_', ' ')} {count}" for name, count in counts.items() if count]
    if named:
        yield "counters", ", ".join(named)
    if router.yielded:
        yield (
            "moved",
            f"away by `appliance vip move`: takes part again with `appliance vip reclaim {router.name}`",
        )
    if router.uninformed_for:
        left = duration(router.uninformed_for)
        yield (
            "waits",
            f"takes no address over until it knows which node has which connections, {left} at most",
        )
    for conflict in router.conflicts:
        ago = f", {duration(now - conflict.last_heard)} ago" if conflict.last_heard else ""
        yield "conflict", f"{conflict.kind} with {conflict.peer or '-'}{ago}: {conflict.detail}"


def _exact(seconds: float) -> str:
    """Return a timer: whole units would hide the skew."""
    return f"{seconds * 1000:.4g}ms" if seconds < 1 else f"{seconds:.4g}s"


def _sum(router: RouterStatus) -> str:
    """Return the priority as a sum of its parts."""
    added = [f"{part.added:+d} {part.track}" for part in router.parts if part.added]
    parts = " ".join([str(router.base), *added])
    return parts if not added and router.priority == router.base else f"{router.priority} = {parts}"


def _parts(router: RouterStatus) -> Table:
    table = columns("tracked", "state", "weight>", "adds>", "detail...")
    for part in router.parts:
        weight = "fault" if part.weight is None else str(part.weight)
        table.add_row(part.track, _verdict(part), weight, str(part.added), Text(part.detail))
    return table


def _verdict(part: PriorityPartStatus) -> Text:
    if part.up is None:
        return Text("checking", style="dim")
    value = f" ({part.value})" if part.value else ""
    return Text(f"{'up' if part.up else 'down'}{value}", style="green" if part.up else "bold red")


def _heard(router: RouterStatus, now: float) -> Table:
    table = columns("heard", "state", "priority>", "last>")
    for each in router.heard:
        ago = f"{duration(now - each.last_heard)} ago" if each.last_heard else "-"
        table.add_row(Text(each.peer), Text(each.state), str(each.priority), ago)
    return table


def _kept(found: Iterable[tuple[str, KeptStatus | KeeperStatus, float]], now: float) -> Table:
    """Return the connections of addresses that have moved, and where they are."""
    table = columns("connections of", "live on", "connections>", "left>")
    for node, each, left_at in found:
        ago = f"{duration(now - left_at)} ago"
        table.add_row(Text(each.address), Text(node), str(each.connections), ago)
    return table


def _moved(found: Iterable[DepartureStatus]) -> Table:
    """Return the sessions that have moved, and why others stay."""
    table = columns("sessions of", "moved to", "moved>", "stay>", "because")
    for each in found:
        reasons = [f"{count}: {why}" for why, count in each.stay.items()]
        why = "; ".join([*reasons, *([each.trouble] if each.trouble else [])])
        stay = str(sum(each.stay.values()))
        table.add_row(*map(Text, (each.address, each.node, str(each.moved), stay, why)))
    return table


def _transitions(router: RouterStatus, now: float) -> Table:
    table = columns("transition", "from", "to", "cause", "by")
    for each in router.transitions[-_TRANSITIONS:]:
        words = (each.previous, each.state, each.cause, each.peer or "-")
        table.add_row(f"{duration(now - each.at)} ago", *map(Text, words))
    return table
