"""The page for people: everything on one screen, with the verdict in words at its top.

It works without a script, and shows itself anew with one. The two phrases in it that begin with `HAProxy
version` and `uptime =` are those that agents look for in HAProxy's own page.
"""

import time
from functools import cache, partial
from importlib.resources import files
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from appliance.core.status.quantities import duration, size
from appliance.core.status.status import GenerationPhase
from appliance.core.status.verdict import result, verdict
from appliance.stats.access import WebAccess
from appliance.stats.figures import Figures
from appliance.wire.haproxy.statistics import duration_text

STATIC: Final = {"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}
"""The files that the page refers to, and their types."""


def page(figures: Figures, access: WebAccess) -> bytes:
    """Return the page as HTML; every text in it is escaped."""
    status = figures.status
    text = _template().render(
        status=status,
        verdict=verdict(status, moment=partial(_moment, now=status.at)),
        process=figures.process,
        uptime=duration_text(figures.process.uptime),
        draining=[each for each in status.generations if each.phase is GenerationPhase.DRAINING],
        admin=access.admin,
        token=access.token,
    )
    return text.encode()


@cache
def static(name: str) -> bytes:
    """Return one of the files of STATIC."""
    return (files("appliance.stats") / "static" / name).read_bytes()


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("appliance.stats"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"since": _since, "duration": duration, "size": size, "result": result}
    return environment.get_template("page.html")


def _since(moment: float | None) -> str:
    return duration(time.time() - moment) if moment else "-"


def _moment(moment: float, *, now: float) -> str:
    """Return a time of today as hours and minutes, an earlier one with its date; in the machine's zone."""
    form = "%H:%M" if time.localtime(moment)[:3] == time.localtime(now)[:3] else "%Y-%m-%d %H:%M"
    return time.strftime(form, time.localtime(moment))
