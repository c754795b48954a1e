"""The page for people: everything on one screen, with the verdict in words at its top.

It works without a script, and updates itself with one. The two phrases in it that begin with `HAProxy
version` and `uptime =` are those that agents search in HAProxy's own page.
"""

import time
from functools import cache, partial
from importlib.resources import files
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from appliance.core.history import series
from appliance.core.history.series import Series
from appliance.core.status.headline import headline, result
from appliance.core.status.problems import holds
from appliance.core.status.quantities import duration, size
from appliance.core.status.status import GenerationPhase
from appliance.model.operator_events import OperatorEvent
from appliance.model.server_states import ServerState
from appliance.stats.access import WebAccess
from appliance.stats.figures import Figures
from appliance.stats.page.lines import Lines
from appliance.wire.haproxy.statistics import duration_text
from appliance.wire.lines.migrate_status import MigrateStatus
from appliance.wire.lines.status_answer import ReloadStatus

STATIC: Final = {"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}
"""The files that the page refers to, and their types."""

HOME: Final = "/haproxy_stats"
"""The path of the page to which others redirect."""

_SHORT: Final = 16
"""Servers of a pool up to which all are shown at once; in larger pools those that are up are folded."""


def page(figures: Figures, events: list[OperatorEvent], access: WebAccess, *, notice: str = "") -> bytes:
    """Return the page as HTML; every text in it is escaped. `notice` is shown above everything else."""
    status, observations = figures.status, figures.observations
    reload = observations.answer(ReloadStatus)
    migrate = observations.answer(MigrateStatus)
    text = _template().render(
        status=status,
        notice=notice,
        home=HOME,
        verdict=headline(status, moment=partial(_moment, now=status.at)),
        process=figures.process,
        uptime=duration_text(figures.process.uptime),
        nodes=[(each, holds(status, each)) for each in status.nodes],
        departures=migrate.departures if migrate else (),
        by_address={address: each for each in status.nodes for address in each.addresses},
        draining=[each for each in status.generations if each.phase is GenerationPhase.DRAINING],
        events=events,
        lines=Lines.of(figures.history, status.at),
        shares_by_pool=figures.shares,
        accepted_at=observations.accepted_at,
        last_reload=reload.last if reload else None,
        refused=reload.refused if reload else (),
        short=_SHORT,
        up=ServerState.UP,
        now=status.at,
        admin=access.admin,
        token=access.token,
    )
    return text.encode()


@cache
def static(name: str) -> bytes:
    """Return one of the files of STATIC."""
    return (files("appliance.stats.page") / "static" / name).read_bytes()


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("appliance.stats.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "since": _since,
        "duration": duration,
        "size": size,
        "result": result,
        "moment": _moment,
        "path": series.line,
        "label": _label,
    }
    return environment.get_template("page.html")


def _label(shown: Series, what: str) -> str:
    """Return the content of a line in words, for people who cannot see it."""
    last = "none" if shown.last is None else shown.last
    return f"{what} a minute in the last hours: at most {shown.most}, {last} in the last one"


def _since(moment: float | None, now: float) -> str:
    return duration(max(0.0, now - moment)) if moment else "-"


def _moment(moment: float, *, now: float) -> str:
    """Return a time of today as hours and minutes, an earlier one with its date, in the machine's zone."""
    form = "%H:%M" if time.localtime(moment)[:3] == time.localtime(now)[:3] else "%Y-%m-%d %H:%M"
    return time.strftime(form, time.localtime(moment))
