"""Sections that accept clients as our frontends, in `ingress` and `api`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from appliance.model.config.values.http import path as http_path
from appliance.model.document.tree import Plain
from appliance.model.messages.quoting import shown
from appliance.model.rules.frontend_rules import MACHINE_CONFIG_PORT
from appliance.translation.haproxy.building import common
from appliance.translation.haproxy.building.access import Access
from appliance.translation.haproxy.building.plan import Front, Plan, Role
from appliance.translation.haproxy.building.routing import DELAY
from appliance.translation.haproxy.building.values import Build
from appliance.translation.haproxy.directives.section import Placed, Rule, Section
from appliance.translation.haproxy.text.lines import Line
from appliance.translation.haproxy.values.quantities import duration
from appliance.translation.translation import Outcome

_COUNT: Final = re.compile(r"nbsrv(?:\(([^()]*)\))?")
_NONE_UP: Final = frozenset({("lt", "1"), ("le", "0"), ("eq", "0")})
_SOME_UP: Final = frozenset({("ge", "1"), ("gt", "0")})
_RIGHT: Final = "only `monitor fail if { nbsrv(BACKEND) lt 1 }` is supported"

EVERYBODY: Final = ("0.0.0.0/0", "::/0")


def needed_pool(section: Section, plan: Plan, build: Build) -> Placed[str] | None:
    """Return the name of the pool that an answer depends on, None if there is none."""
    needed: Placed[str] | None = None
    for rule in section.failures:
        for line in (line for word in rule.condition for line in section.acls.get(word, ())):
            build.report.use(line.number)
        name = _backend(rule, section.acls)
        pool = plan.pool_name(name or section.name)
        if name is None:
            build.report.add(Outcome.REFUSED, rule.line.place, f"{shown(' '.join(rule.condition))}: {_RIGHT}")
        elif pool is None:
            build.report.add(
                Outcome.REFUSED, rule.line.place, f"there is no backend {shown(name)} with servers"
            )
        elif needed is not None and needed.value != pool:
            reason = (
                f"an answer depends on one pool, here {shown(needed.value)}: give this rule a separate port"
            )
            build.report.add(Outcome.REFUSED, rule.line.place, reason)
        else:
            needed = Placed(value=pool, place=rule.line.place)
    return needed


def _backend(rule: Rule, acls: Mapping[str, list[Line]]) -> str | None:
    """Return the backend whose servers a rule counts, "" for the section's own; None for another rule."""
    words = tuple(each for each in rule.condition if each not in {"{", "}"})
    if len(words) == 1 and len(acls.get(words[0], ())) == 1:
        words = acls[words[0]][0].texts[2:]
    return _counted(words, _NONE_UP if rule.verb == "if" else _SOME_UP)


def _counted(words: Sequence[str], right: frozenset[tuple[str, str]]) -> str | None:
    if len(words) != 3 or (words[1], words[2]) not in right:
        return None
    match = _COUNT.fullmatch(words[0])
    return (match[1] or "") if match else None


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
    given = next((each.user_timeout for each in section.binds if each.user_timeout), None)
    if given and given.value:
        build.put((*path, "tcp_user_timeout"), duration(given.value), given.place)


def _put_target(path: tuple[str, ...], front: Front, plan: Plan, build: Build) -> None:
    section = front.section
    if front.pool is not None:
        given = section.settings.backend
        build.put(
            (*path, "pool"), plan.pool_name(front.pool.name), given.place if given else section.header.place
        )
        _tell_unanswered(section, build)
        return
    uri = section.settings.texts["monitor-uri"]
    try:
        build.put((*path, "respond"), http_path(build.take(uri)), uri.place)
    except ValueError as error:
        build.report.add(Outcome.REFUSED, uri.place, str(error))
    needed = needed_pool(section, plan, build)
    if needed:
        build.put((*path, "needs"), needed.value, needed.place)


def _put_routes(path: tuple[str, ...], front: Front, plan: Plan, build: Build) -> None:
    for route in front.routes:
        place, pool = route.rule.line.place, plan.pool_name(route.backend.name)
        if route.networks:
            networks: list[Plain] = [each.value for each in route.networks]
            build.tree.append((*path, "clients"), {"networks": networks, "pool": pool}, place)
        if route.names.names:
            names: list[Plain] = list(route.names.names)
            build.tree.append((*path, "sni"), {"names": names, "pool": pool}, place)
        for regex in route.names.regexes:
            build.tree.append((*path, "sni"), {"regex": regex, "pool": pool}, place)
    delay = front.section.settings.times.get(DELAY)
    waits = any(not route.networks for route in front.routes)
    if waits and delay and build.take(delay):
        build.put((*path, "timeouts", "hello"), duration(delay.value), delay.place)


def _tell_unanswered(section: Section, build: Build) -> None:
    reason = "HAProxy answers this only in `mode http`, and this section is in `mode tcp`"
    uri = section.settings.texts.get("monitor-uri")
    if uri:
        build.take(uri)
        build.report.add(Outcome.IGNORED, uri.place, reason)
    for rule in section.failures:
        build.report.add(Outcome.IGNORED, rule.line.place, reason)


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
    build.report.add(Outcome.CHANGED, place, reason)
