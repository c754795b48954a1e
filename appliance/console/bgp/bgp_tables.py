"""Shared IPs and the sessions with neighbours as tables for a terminal."""

from collections.abc import Iterable, Iterator
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from appliance.console.output.printing import columns
from appliance.console.status.fitted_table import FittedTable
from appliance.core.announce.announce_or_withdraw import SharedState
from appliance.core.status.quantities import duration
from appliance.core.status.shared_ips import BFD_UP
from appliance.core.status.status import BgpStatus
from appliance.model.messages.quoting import printable
from appliance.model.snapshot.shared_ip import Engine
from appliance.wire.lines.announce_status import NeighborStatus, SharedIpStatus

_STYLES: Final = {SharedState.SERVING.value: "bold green", SharedState.STARTING.value: "yellow"}


def bgp_tables(
    shared: Iterable[SharedIpStatus], bgp: BgpStatus, wrong: Iterable[str], now: float
) -> RenderableType:
    """Return everything about shared IPs at `now`, Unix seconds, below the sentences in `wrong`."""
    parts: list[RenderableType] = [Text(f"! {printable(each)}", style="red") for each in wrong]
    return Group(*parts, *([""] if parts else []), shared_ips_table(shared, bgp, now), *_sessions(bgp, now))


def shared_ips_table(shared: Iterable[SharedIpStatus], bgp: BgpStatus, now: float) -> RenderableType:
    """Return the shared IPs; a narrow terminal gets fewer columns."""
    table = columns("shared ip", "addresses", "state", "since>", "announced to", "others", "reason...")
    for each in shared:
        state = each.state or "unknown"
        table.add_row(
            each.name,
            Text(" ".join(each.addresses)),
            Text(state, style=_STYLES.get(state, "bold red")),
            duration(now - each.since) if each.since else "-",
            _announced(each, bgp),
            Text(printable(", ".join(each.others) or "-")),
            Text(printable(each.reason)),
        )
    return FittedTable(table=table, optional=("since", "others", "addresses"))


def _announced(shared: SharedIpStatus, bgp: BgpStatus) -> str:
    """Return how many of its neighbours have it, or the table that another daemon reads."""
    if bgp.engine == Engine.BIRD:
        return f"{len(shared.announced_to)}/{len(shared.neighbors)}"
    tables = {SharedState.SERVING.value: bgp.serve, SharedState.DRAINED.value: bgp.drain}
    return f"table {tables[shared.state]}" if shared.state in tables else "-"


def _sessions(bgp: BgpStatus, now: float) -> Iterator[RenderableType]:
    yield ""
    if bgp.engine != Engine.BIRD:
        yield Text(
            f"Served addresses are written to the kernel's table {bgp.serve}, drained ones to table"
            f" {bgp.drain}; whether they are announced is the other daemon's to show."
        )
    else:
        yield FittedTable(table=_neighbors(bgp.neighbors, now), optional=("since", "AS"))


def _neighbors(neighbors: Iterable[NeighborStatus], now: float) -> Table:
    table = columns("neighbor", "address", "AS>", "session", "since>", "bfd", "sent>", "last error...")
    for each in neighbors:
        table.add_row(
            each.name,
            Text(each.address),
            str(each.asn),
            Text(each.state or "unknown", style="green" if each.is_up else "bold red"),
            duration(now - each.since) if each.since else "-",
            Text(each.bfd or "-", style="" if each.bfd in ("", BFD_UP) else "bold red"),
            str(each.exported),
            Text(printable(each.error)),
        )
    return table
