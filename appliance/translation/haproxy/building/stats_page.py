"""Sections that show HAProxy's statistics, as our section `stats` with all their addresses and paths.

The one page has the same user and clients at all addresses: sections with others are left out.
"""

from collections.abc import Sequence

from appliance.model.config.values.http import path as http_path
from appliance.model.messages.quoting import printable
from appliance.translation.haproxy.building.frontends import needed_pool
from appliance.translation.haproxy.building.plan import Front, Plan, Role
from appliance.translation.haproxy.building.values import Build
from appliance.translation.haproxy.directives.section import Placed, Section, StatsSettings
from appliance.translation.translation import Outcome


def put_stats(plan: Plan, build: Build) -> None:
    """Put the page of the first section with statistics, and what others add to it."""
    fronts = [each for each in plan.fronts if each.role is Role.STATS]
    page: _Page | None = None
    for front in fronts:
        for section in front.pages:
            _take(section.settings.stats, build)
        if page is None:
            page = _Page(front, plan, build)
        elif _who(front) == _who(page.first):
            page.add(front)
        else:
            reason = (
                "statistics have one user and one list of clients, those of "
                f"`{page.first.section.name}`: this section's statistics are left out"
            )
            build.report.add(Outcome.CHANGED, front.section.header.place, reason)


class _Page:
    """The page as put so far; `_monitor` is what the same address also answers."""

    def __init__(self, first: Front, plan: Plan, build: Build) -> None:
        self.first = first
        self._plan = plan
        self._build = build
        self._monitor: Placed[str] | None = None
        build.put(("stats",), {}, first.section.header.place)
        bind, *_ = first.binds
        build.put(("stats", "bind"), str(bind.value), bind.place)
        for key, networks in (("allow", first.access.allow), ("deny", first.access.deny)):
            for network in networks:
                build.tree.append(("stats", key), network.value, network.place)
        _put_user(_settings(first), build)
        self.add(first)

    def add(self, front: Front) -> None:
        """Add the addresses and paths of another section to the page."""
        for bind in front.binds:
            if bind is not self.first.binds[0]:
                self._build.tree.append(("stats", "also_bind"), str(bind.value), bind.place)
        for section in front.pages:
            if section.settings.stats.uri:
                self._add_path(section.settings.stats.uri)
        if "monitor-uri" in front.section.settings.texts:
            self._answer(front.section, front.section.settings.texts["monitor-uri"])

    def _add_path(self, uri: Placed[str]) -> None:
        reason = f"the figures are at `{printable(uri.value)};csv`, and at /metrics and /api/v1/status"
        self._build.report.add_to_line(Outcome.CHANGED, uri.place.line, reason, None)
        try:
            self._build.tree.append(("stats", "uri"), http_path(uri.value), uri.place)
        except ValueError as error:
            self._build.report.add(Outcome.REFUSED, uri.place, str(error))

    def _answer(self, section: Section, uri: Placed[str]) -> None:
        build = self._build
        build.report.use(uri.place.line)
        needed = needed_pool(section, self._plan, build)
        if self._monitor is not None and (self._monitor.value != uri.value or needed):
            reason = (
                f"`{self._monitor.value}` is answered alongside the statistics: give this monitor a "
                "separate port"
            )
            build.report.add(Outcome.REFUSED, uri.place, reason)
            return
        try:
            build.put(("stats", "respond"), http_path(uri.value), uri.place)
        except ValueError as error:
            build.report.add(Outcome.REFUSED, uri.place, str(error))
            return
        self._monitor = uri
        if needed:
            build.put(("stats", "needs"), needed.value, needed.place)


def _who(front: Front) -> object:
    """Return who may do what, for comparison."""
    stats = _settings(front)
    return (
        stats.auth and stats.auth.value,
        stats.auth is not None and stats.admin is not None,
        _values(front.access.allow),
        _values(front.access.deny),
    )


def _values(networks: Sequence[Placed[str]]) -> frozenset[str]:
    return frozenset(each.value for each in networks)


def _put_user(stats: StatsSettings, build: Build) -> None:
    """Put who may see the page, and whether servers can be changed: never without a user."""
    if stats.auth:
        user, password = stats.auth.value
        build.put(("stats", "auth", "user"), user, stats.auth.place)
        build.put(("stats", "auth", "password"), password, stats.auth.place)
    if stats.admin and stats.auth:
        build.put(("stats", "admin"), "on", stats.admin.place)
    elif stats.admin:
        reason = "the page lets only an authenticated user change servers: write `stats auth USER:PASSWORD`"
        build.report.add(Outcome.CHANGED, stats.admin.place, reason)


def _settings(front: Front) -> StatsSettings:
    """Return the statistics whose user applies to all of a front: the first that require one, if any."""
    every = [each.settings.stats for each in front.pages]
    return next((each for each in every if each.auth), every[0])


def _take(stats: StatsSettings, build: Build) -> None:
    for given in (stats.on, stats.uri, stats.auth, stats.admin):
        if given:
            build.report.use(given.place.line)
