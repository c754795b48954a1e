"""The lines above the table: whether it serves, the sums of all traffic, and the holders of virtual IPs."""

from collections.abc import Callable
from typing import Final

from appliance.core.status.headline import Level, headline
from appliance.core.top.cells import rate_text, size_text
from appliance.core.top.rates import summed
from appliance.core.top.sample import Sample
from appliance.core.top.tables import Style
from appliance.core.top.traffic import error_rate
from appliance.model.messages.quoting import printable

_STYLES: Final = {Level.OK: Style.GOOD, Level.ATTENTION: Style.WARNING, Level.CRITICAL: Style.BAD}


def title(sample: Sample, *, moment: Callable[[float], str]) -> str:
    """Return the subject and the time of the look."""
    status = sample.status
    name = f"{status.cluster}  " if status.cluster else ""
    number = f"configuration {status.configuration}" if status.configuration else "no configuration"
    return printable(f"appliance top  {name}{number}  {moment(status.at)}")


def serves(sample: Sample, *, moment: Callable[[float], str]) -> tuple[str, Style]:
    """Return the sentences on whether it serves, as on the status page."""
    said = headline(sample.status, moment=moment)
    return printable(said.text), _STYLES[said.level]


def totals(sample: Sample) -> str:
    """Return the sums over all frontends and servers."""
    status = sample.status

    def per_second(name: str) -> float | None:
        return summed(sample.rates.of("frontend", each.program, each.name, name) for each in status.frontends)

    queued = sum(pool.queued for pool in status.pools)
    parts = (
        f"sessions {sum(each.current for each in status.frontends)}",
        f"new/s {rate_text(per_second('total'))}",
        f"errors/s {rate_text(error_rate(sample))}",
        f"queue {queued}",
        f"in/s {size_text(per_second('bytes_in'))}",
        f"out/s {size_text(per_second('bytes_out'))}",
        f"denied/s {rate_text(per_second('denied'))}",
    )
    return "  ".join(parts)


def virtual_ips(sample: Sample) -> str:
    """Return the holder of each virtual IP; nothing if there are none."""
    said = []
    for each in sample.status.virtual_ips:
        peer = f" ({each.active_peer} is active)" if each.active_peer and not each.active else ""
        said.append(f"{each.name} {each.state or 'unknown'}{peer}")
    return printable(f"vips: {', '.join(said)}") if said else ""
