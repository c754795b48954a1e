"""Routes of a section: `use_backend` by server name and by port, in the order of the file.

For each port that a section listens on, its rules amount to a list of server names, and one backend for all
others. Conditions on the port are resolved here, and ports with different results become separate frontends.
As in HAProxy the first matching rule decides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from appliance.model.config.values.addresses import Endpoint
from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.building.client_networks import ConditionError
from appliance.translation.haproxy.building.route_criteria import RouteCondition, ServerNames, route_condition
from appliance.translation.haproxy.directives.section import Level, Placed, Rule, Section
from appliance.translation.haproxy.text.report import Report
from appliance.translation.translation import Outcome

DELAY: Final = "inspect-delay"
_CASED: Final = "case in server names is ignored here, as with `-i`"
_NOT_WAITED: Final = (
    "the appliance waits for the name, as with `tcp-request inspect-delay 5s` and `tcp-request content "
    "accept if { req.ssl_hello_type 1 }`: without them HAProxy evaluates whatever has arrived by then"
)


class RoutingError(Exception):
    """A routing rule that is not understood, and already refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The backend for clients that request one of some names, by `rule`."""

    backend: Section
    names: ServerNames
    rule: Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """Addresses whose clients have the same routes: by name, all others to `backend`, None for nowhere."""

    binds: tuple[Placed[Endpoint], ...]
    routes: tuple[Route, ...]
    backend: Section | None


def routings(
    section: Section,
    binds: Sequence[Placed[Endpoint]],
    backends: Mapping[str, Section],
    otherwise: Section | None,
    report: Report,
) -> tuple[Routing, ...]:
    """Return the backends by port; `otherwise` gets the other clients. Raises RoutingError."""
    rules = _understood(section, backends, report)
    found: dict[object, Routing] = {}
    for bind in binds:
        made = _at(bind, rules, otherwise, report)
        same = tuple((route.backend.name, route.names) for route in made.routes)
        key = same, made.backend.name if made.backend else None
        before = found.get(key)
        found[key] = Routing(
            binds=((*before.binds, bind) if before else (bind,)), routes=made.routes, backend=made.backend
        )
    _report_changes(section, [route for each in found.values() for route in each.routes], report)
    return tuple(found.values())


_Understood = tuple[Rule, RouteCondition, Section]


def _understood(section: Section, backends: Mapping[str, Section], report: Report) -> list[_Understood]:
    found: list[_Understood] = []
    for rule in section.routes:
        try:
            condition = route_condition(rule.condition, section.acls)
        except ConditionError as error:
            report.add(Outcome.REFUSED, rule.line.place, str(error))
            continue
        if rule.verb not in backends:
            hint = report.meant(rule.verb, backends)
            report.add(Outcome.REFUSED, rule.line.at(1), f"there is no backend {shown(rule.verb)}{hint}")
            continue
        found.append((rule, condition, backends[rule.verb]))
    if len(found) < len(section.routes):
        raise RoutingError
    return found


def _at(
    bind: Placed[Endpoint], rules: Sequence[_Understood], otherwise: Section | None, report: Report
) -> Routing:
    """Return the route of clients of one address; the rules that they can reach count as used."""
    routes: list[Route] = []
    for rule, condition, backend in rules:
        for line in (rule.line, *condition.lines):
            report.use(line.number)
        names = condition.names(bind.value.port)
        if names is True:
            return Routing(binds=(bind,), routes=tuple(routes), backend=backend)
        if isinstance(names, ServerNames):
            routes.append(Route(backend=backend, names=names, rule=rule))
    return Routing(binds=(bind,), routes=tuple(routes), backend=otherwise)


def _report_changes(section: Section, routes: Sequence[Route], report: Report) -> None:
    """Report the differences: case, and that we wait for the name."""
    for route in routes:
        if route.names.cased:
            report.add(Outcome.CHANGED, route.rule.line.place, _CASED)
    delay = section.settings.times.get(DELAY)
    if routes and not (delay and delay.value and section.rules.get(Level.CONTENT)):
        report.add(Outcome.CHANGED, routes[0].rule.line.place, _NOT_WAITED)
