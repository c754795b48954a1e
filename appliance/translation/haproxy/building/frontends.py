"""Sections that accept clients as our frontends, in `ingress` and `api`."""

from dataclasses import replace
from typing import Final

from appliance.model.config.values.http import path as http_path
from appliance.model.document.tree import Plain
from appliance.model.rules.frontend_rules import MACHINE_CONFIG_PORT
from appliance.translation.haproxy.building import common
from appliance.translation.haproxy.building.access import Access
from appliance.translation.haproxy.building.monitors import needed_pool
from appliance.translation.haproxy.building.plan import Front, Plan, Role
from appliance.translation.haproxy.building.routing import DELAY
from appliance.translation.haproxy.building.values import Build, Placed
from appliance.translation.haproxy.directives.section import Section
from appliance.translation.haproxy.values.quantities import duration
from appliance.translation.translation import Outcome

EVERYBODY: Final = ("0.0.0.0/0", "::/0")


def put_frontends(plan: Plan, defaults: common.Defaults, build: Build) -> None:
    """Put each front that forwards or answers into its group."""
    for group in ("api", "ingress"):
        for front in plan.fronts:
            forwards = front.role in {Role.FORWARD, Role.RESPOND}
            if forwards and plan.is_ingress(front) is (group == "ingress"):
                _put(("" + group, "frontends", front.name), front, plan, defaults, build)


def _put(path: tuple[str, ...], front: Front, plan: Plan, defaults: common.Defaults, build: Build) -> None:
    section = front.section
    build.put(path, {}, section.header.place)
    for endpoint in front.binds:
        build.tree.append((*path, "bind"), str(endpoint.value), endpoint.place)
    _put_target(path, front, plan, build)
    _put_routes(path, front, plan, build)
    lists = replace(front.access)
    _open_machine_config(front, lists, build)
    for key, networks in (("allow", lists.allow), ("deny", lists.deny)):
        for network in networks:
            build.tree.append((*path, key), network.value, network.place)
    limit = defaults.limits[front.name]
    if limit and defaults.limit and limit.value != defaults.limit.value:
        build.put((*path, "max_connections"), limit.value, limit.place)
    if front.name in defaults.clients:
        common.put_times((*path, "timeouts"), defaults.clients[front.name], defaults.usual, build)
    common.put_keepalive((*path, "keepalive"), section, "clitcpka", build)
    said = next((each.user_timeout for each in section.binds if each.user_timeout), None)
    if said and said.value:
        build.put((*path, "tcp_user_timeout"), duration(said.value), said.place)


def _put_target(path: tuple[str, ...], front: Front, plan: Plan, build: Build) -> None:
    section = front.section
    if front.pool is not None:
        said = section.settings.backend
        build.put(
            (*path, "pool"), plan.pool_name(front.pool.name), said.place if said else section.header.place
        )
        _tell_unanswered(section, build)
        return
    uri = section.settings.texts["monitor-uri"]
    try:
        build.put((*path, "respond"), http_path(build.take(uri)), uri.place)
    except ValueError as error:
        build.report.say(Outcome.REFUSED, uri.place, str(error))
    needed = needed_pool(section, plan, build)
    if needed:
        build.put((*path, "needs"), needed.value, needed.place)


def _put_routes(path: tuple[str, ...], front: Front, plan: Plan, build: Build) -> None:
    for route in front.routes:
        place, pool = route.rule.line.place, plan.pool_name(route.backend.name)
        if route.names.names:
            names: list[Plain] = list(route.names.names)
            build.tree.append((*path, "sni"), {"names": names, "pool": pool}, place)
        for regex in route.names.regexes:
            build.tree.append((*path, "sni"), {"regex": regex, "pool": pool}, place)
    delay = front.section.settings.times.get(DELAY)
    if front.routes and delay and build.take(delay):
        build.put((*path, "timeouts", "hello"), duration(delay.value), delay.place)


def _tell_unanswered(section: Section, build: Build) -> None:
    reason = "HAProxy answers this only in `mode http`, and this section is in `mode tcp`"
    uri = section.settings.texts.get("monitor-uri")
    if uri:
        build.take(uri)
        build.report.say(Outcome.IGNORED, uri.place, reason)
    for rule in section.failures:
        build.report.say(Outcome.IGNORED, rule.line.place, reason)


def _open_machine_config(front: Front, lists: Access, build: Build) -> None:
    """State that everybody may reach port 22623, if the file sets no limit: our configuration requires it."""
    servers = [server for pool in front.pools for server in pool.servers.values()]
    ports = front.ports | {each.target.port for each in servers}
    if MACHINE_CONFIG_PORT not in ports or lists.allow:
        return
    place = front.section.binds[0].place
    lists.allow = [Placed(value=each, place=place) for each in EVERYBODY]
    reason = (
        f"port {MACHINE_CONFIG_PORT} serves machine configuration, which contains secrets: here access "
        "for everybody must be explicit (`allow`)"
    )
    build.report.say(Outcome.CHANGED, place, reason)
