"""The discovered servers as tables for a terminal."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from appliance.console.output.printing import columns
from appliance.core.status.quantities import duration
from appliance.model.messages.quoting import printable
from appliance.wire.lines.discovery_status import DiscoveryStatus, SourceStatus


def sources_table(sources: tuple[SourceStatus, ...], now: float) -> Table:
    """Return a line for each source; `appliance status` shows it too."""
    table = columns("discovered", "for", "servers>", "seen>", "changed>", "last error...")
    for each in sources:
        table.add_row(
            each.name,
            " ".join(each.pools),
            str(len(each.servers)),
            _ago(each.seen_at, now),
            _ago(each.changed_at, now),
            Text(printable(each.hold or _last_error(each)), style="red"),
        )
    return table


def discovery_tables(status: DiscoveryStatus, now: float) -> RenderableType:
    """Return everything: problems, sources, servers, and requests."""
    problems = [Text(f"! {printable(each)}", style="red") for each in status.problems]
    servers = columns("server", "source", "address", "")
    resources = columns("resource", "source", "asked last", "seen>", "last error...", "at>")
    for source in status.sources:
        for server in source.servers:
            held = Text("held: the API does not show it", style="yellow") if server.held else ""
            servers.add_row(server.name, source.name, server.host, held)
        for each in source.resources:
            error = Text(printable(each.error or ""), style="red")
            asked = each.server or "-"
            resources.add_row(
                each.what, source.name, asked, _ago(each.seen_at, now), error, _ago(each.failed_at, now)
            )
    return Group(*problems, sources_table(status.sources, now), "", servers, "", resources)


def _last_error(source: SourceStatus) -> str:
    return next((f"{each.what}: {each.error}" for each in source.resources if each.error), "")


def _ago(moment: float | None, now: float) -> str:
    return f"{duration(max(0.0, now - moment))} ago" if moment else "never"
