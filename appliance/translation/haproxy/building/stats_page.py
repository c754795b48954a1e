"""Sections that show HAProxy's statistics as our section `stats`, which has one address."""

from typing import Final

from appliance.model.config.values.addresses import Endpoint, literal
from appliance.translation.haproxy.building.frontends import listened
from appliance.translation.haproxy.building.plan import Front, Plan, Role
from appliance.translation.haproxy.building.values import Build
from appliance.translation.haproxy.directives.section import Section, StatsSettings
from appliance.translation.translation import Outcome

_HERE: Final = "localhost"
_MOVED: Final = f"{_HERE}:29445"


def put_stats(plan: Plan, build: Build) -> None:
    """Put the address of the first section with statistics; the others are told where it is."""
    first: Front | None = None
    for front in plan.fronts:
        if front.role is Role.STATS:
            _put_page(front, first, build)
            first = first or front
        elif front.role is Role.RESPOND:
            _tell_moved(front.section, build)


def _put_page(front: Front, first: Front | None, build: Build) -> None:
    section = front.section
    stats = _settings(front)
    _take(stats, build)
    if first is not None:
        reason = f"there is one page, that of `{first.section.name}`"
        build.report.say(Outcome.CHANGED, section.binds[0].place, reason)
        return
    endpoint, *others = listened(section, build)
    address = _guarded(endpoint.value, stats, section, build)
    build.put(("stats",), {}, section.header.place)
    build.put(("stats", "bind"), str(address), endpoint.place)
    for other in others:
        build.report.say(Outcome.CHANGED, other.place, f"there is one page, at `{address}`")


def _guarded(endpoint: Endpoint, stats: StatsSettings, section: Section, build: Build) -> Endpoint:
    """Return the address of the page, on localhost alone where the file says who may look.

    That is said in our own file, and until then nobody else may.
    """
    said = [each.place for each in (stats.auth, stats.guarded) if each] + [
        rule.line.place for rule in section.access
    ]
    literal_host = literal(endpoint.host)
    if not said or endpoint.host == _HERE or (literal_host is not None and literal_host.is_loopback):
        return endpoint
    address = Endpoint(host=_HERE, port=endpoint.port)
    for place in said:
        reason = f"who may look is said in `stats` of our own file; until then the page is at {address} alone"
        build.report.say(Outcome.CHANGED, place, reason)
    return address


def _settings(front: Front) -> StatsSettings:
    own = front.section.settings.stats
    return own if own.on or front.pool is None else front.pool.settings.stats


def _take(stats: StatsSettings, build: Build) -> None:
    for said in (stats.on, stats.uri, stats.auth, stats.guarded, stats.admin):
        if said:
            build.report.use(said.place.line)


def _tell_moved(section: Section, build: Build) -> None:
    """Note where the page is of a section whose `monitor-uri` is answered: one port has one of the two."""
    on = section.settings.stats.on
    if on is None:
        return
    _take(section.settings.stats, build)
    build.put(("stats",), {}, on.place)
    build.put(("stats", "bind"), _MOVED, on.place)
    reason = f"this port answers `monitor-uri` alone, so the page is at {_MOVED}"
    build.report.say(Outcome.CHANGED, on.place, reason)
