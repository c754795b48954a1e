"""Sections that show HAProxy's statistics as our section `stats`, which has one address."""

from typing import Final

from appliance.model.config.values.addresses import Endpoint
from appliance.translation.haproxy.building.access import access
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
        reason = f"there is one address for statistics, that of `{first.section.name}`"
        build.report.say(Outcome.CHANGED, section.binds[0].place, reason)
        return
    endpoint, *others = listened(section, build)
    lists = access(section, build)
    # What our keys cannot say of who may look must not open the page to everybody.
    hidden = [each for each in (stats.guarded, *lists.deny) if each]
    address = Endpoint(host=_HERE, port=endpoint.value.port) if hidden else endpoint.value
    for each in hidden:
        reason = f"this cannot be asked, so the statistics are at `{address}` alone"
        build.report.say(Outcome.CHANGED, each.place, reason)
    build.put(("stats",), {}, section.header.place)
    build.put(("stats", "bind"), str(address), endpoint.place)
    for network in lists.allow:
        build.tree.append(("stats", "allow"), network.value, network.place)
    _put_user(stats, build)
    for other in others:
        build.report.say(Outcome.CHANGED, other.place, f"there is one address for statistics, `{address}`")


def _put_user(stats: StatsSettings, build: Build) -> None:
    """Put who may look, and whether servers can be changed, which nobody may whose name is not known."""
    if stats.auth:
        user, password = stats.auth.value
        build.put(("stats", "auth", "user"), user, stats.auth.place)
        build.put(("stats", "auth", "password"), password, stats.auth.place)
    if stats.admin and stats.auth:
        build.put(("stats", "admin"), "on", stats.admin.place)
    elif stats.admin:
        reason = "servers cannot be changed there by everybody: write `stats auth USER:PASSWORD`"
        build.report.say(Outcome.CHANGED, stats.admin.place, reason)


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
    _put_user(section.settings.stats, build)
    reason = f"this port answers `monitor-uri` alone, so the statistics are at {_MOVED}"
    build.report.say(Outcome.CHANGED, on.place, reason)
