"""The page for people: everything on one screen, with the verdict in words at its top.

It works without a script, and updates itself with one. The two phrases in it that begin with `HAProxy
version` and `uptime =` are those that agents search in HAProxy's own page.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from appliance.core.history.series import Series, line, series
from appliance.core.status.headline import headline, result
from appliance.core.status.problems import holds
from appliance.core.status.quantities import duration, size
from appliance.core.status.status import GenerationPhase
from appliance.model.operator_events import OperatorEvent
from appliance.model.server_states import ServerState
from appliance.stats.access import WebAccess
from appliance.stats.figures import Figures
from appliance.wire.haproxy.statistics import duration_text
from appliance.wire.history_ring import Minute
from appliance.wire.lines.migrate_status import MigrateStatus
from appliance.wire.lines.reload_status import ReloadStatus

STATIC: Final = {"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}
"""The files that the page refers to, and their types."""

HOME: Final = "/haproxy_stats"
"""The path of the page to which others redirect."""

_SHORT: Final = 16
"""Servers of a pool up to which all are shown at once; in larger pools those that are up are folded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """The lines of all frontends together, and of each frontend and pool in the minutes.

    `latest` is the last complete minute, None if none of the last few is there.
    """

    latest: Minute | None
    connections: Series
    sessions: Series
    failed: Series
    bytes: Series
    frontends: Mapping[str, Series]
    pools: Mapping[str, Series]

    @classmethod
    def of(cls, minutes: tuple[Minute, ...], now: float) -> "Lines":
        """Return the lines up to `now`, Unix seconds."""
        ends = int(now // 60) - 1
        latest = minutes[-1] if minutes and minutes[-1].number >= ends - 1 else None
        frontends = {name for each in minutes for name in each.frontends}
        pools = {name for each in minutes for name in each.pools}
        return cls(
            latest=latest,
            connections=series(minutes, lambda each: each.total.connections, ends=ends),
            sessions=series(minutes, lambda each: each.total.sessions, ends=ends),
            failed=series(minutes, lambda each: each.total.failed, ends=ends),
            bytes=series(minutes, lambda each: each.total.bytes, ends=ends),
            frontends={name: _of_frontend(minutes, name, ends) for name in frontends},
            pools={name: _of_pool(minutes, name, ends) for name in pools},
        )


def _of_frontend(minutes: tuple[Minute, ...], name: str, ends: int) -> Series:
    return series(
        minutes, lambda each: each.frontends[name].connections if name in each.frontends else None, ends=ends
    )


def _of_pool(minutes: tuple[Minute, ...], name: str, ends: int) -> Series:
    return series(
        minutes, lambda each: each.pools[name].connections if name in each.pools else None, ends=ends
    )


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
        "path": line,
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
