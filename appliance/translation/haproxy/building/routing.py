"""Routes of a section: `use_backend` by client network, server name and port, in the order of the file.

For each port that a section listens on, its rules amount to a list of client networks, a list of server
names, and one backend for all others. Conditions on the port are resolved here, and ports with different
results become separate frontends. As in HAProxy the first matching rule decides.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from appliance.model.config.values.addresses import Endpoint
from appliance.model.messages.quoting import shown
from appliance.model.network_cover import NetworkCover, numbered
from appliance.translation.haproxy.building.access import common
from appliance.translation.haproxy.building.client_networks import ClientNetworks, Condition, ConditionError
from appliance.translation.haproxy.building.route_criteria import RouteCondition, ServerNames, route_condition
from appliance.translation.haproxy.directives.section import Level, Placed, Rule, Section
from appliance.translation.haproxy.text.report import Report
from appliance.translation.translation import Outcome

DELAY: Final = "inspect-delay"
_NETWORKS_FIRST: Final = (
    "client networks are compared before server names here: write the rules with `src` first, and without "
    "`!` and `unless`"
)
_CASED: Final = "case in server names is ignored here, as with `-i`"
_NOT_WAITED: Final = (
    "the appliance waits for the name, as with `tcp-request inspect-delay 5s` and `tcp-request content "
    "accept if { req.ssl_hello_type 1 }`: without them HAProxy evaluates whatever has arrived by then"
)


_NO_NAMES: Final = ServerNames()


class RoutingError(Exception):
    """A routing rule that is not understood, and already refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The backend for clients of some networks, or for those that request one of some names, by `rule`."""

    backend: Section
    rule: Rule
    networks: tuple[Placed[str], ...] = ()
    names: ServerNames = _NO_NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """Addresses whose clients have the same routes: by network, then by name.

    All others go to `backend`, None for nowhere.
    """

    binds: tuple[Placed[Endpoint], ...]
    routes: tuple[Route, ...]
    backend: Section | None
    to_default: bool = False
    """Whether clients reach the end of the rules, and so the `default_backend`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The backends by name, and the one for clients without a rule, None for nowhere.

    `nowhere` makes a backend that closes connections.
    """

    backends: Mapping[str, Section]
    otherwise: Section | None
    nowhere: Callable[[], Section]


def routings(
    section: Section,
    binds: Sequence[Placed[Endpoint]],
    targets: Targets,
    networks: ClientNetworks,
    report: Report,
) -> tuple[Routing, ...]:
    """Return the backends by port. Raises RoutingError."""
    rules = _understood(section, targets.backends, networks, report)
    found: dict[object, Routing] = {}
    for bind in binds:
        made = _at(bind, rules, targets, report)
        same = tuple((route.backend.name, route.networks, route.names) for route in made.routes)
        key = same, made.backend.name if made.backend else None
        before = found.get(key)
        if before:
            every, to_default = (*before.binds, bind), before.to_default or made.to_default
            made = replace(made, binds=every, to_default=to_default)
        found[key] = made
    _report_changes(section, [route for each in found.values() for route in each.routes], report)
    return tuple(found.values())


_Understood = tuple[Rule, RouteCondition, Section]


def _understood(
    section: Section, backends: Mapping[str, Section], networks: ClientNetworks, report: Report
) -> list[_Understood]:
    found: list[_Understood] = []
    for rule in section.routes:
        try:
            condition = route_condition(rule.condition, section.acls, networks)
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


def _at(bind: Placed[Endpoint], rules: Sequence[_Understood], targets: Targets, report: Report) -> Routing:
    """Return the routes of clients of one address; the rules that they can reach count as used."""
    routes = _Routes(bind, targets.nowhere)
    for rule, condition, backend in rules:
        routed = condition.routed(bind.value.port)
        try:
            is_reached = isinstance(routed, bool) or routes.add(rule, backend, routed)
        except ConditionError as error:
            report.add(Outcome.REFUSED, rule.line.place, str(error))
            raise RoutingError from None
        for line in (rule.line, *condition.lines) if is_reached else ():
            report.use(line.number)
        if routed is True:
            return routes.ended(backend)
    return replace(routes.ended(targets.otherwise), to_default=True)


class _Routes:
    """The routes of one address, rule by rule.

    `_rest` are the only networks whose clients no rule has routed yet, None for no such limit: a rule for all
    but some networks leaves these. They follow the later rules, and then all others that rule (`_outside`).
    """

    def __init__(self, bind: Placed[Endpoint], nowhere: Callable[[], Section]) -> None:
        self._bind = bind
        self._nowhere = nowhere
        self._by_network: list[Route] = []
        self._by_name: list[Route] = []
        self._routed = NetworkCover()
        self._rest: list[Placed[str]] | None = None
        self._outside: list[tuple[Rule, Section, list[Placed[str]]]] = []

    def add(self, rule: Rule, backend: Section, routed: ServerNames | Condition) -> bool:
        """Add a rule; return whether any client reaches it. Raises ConditionError."""
        if isinstance(routed, ServerNames):
            if self._rest is not None:
                raise ConditionError(_NETWORKS_FIRST)
            self._by_name.append(Route(backend=backend, rule=rule, names=routed))
            return True
        if self._by_name:
            raise ConditionError(_NETWORKS_FIRST)
        found = [Placed(value=each, place=rule.line.place) for each in routed.networks]
        if self._rest is not None:
            found = common(found, self._rest)
        if not routed.negated:
            return self._route(rule, backend, found)
        self._outside.append((rule, backend, self._rest or []))
        self._rest = found
        return True

    def ended(self, otherwise: Section | None) -> Routing:
        """Return the routing; `otherwise` gets the clients that are left."""
        if self._outside:
            if self._rest:
                self._route(self._outside[-1][0], otherwise or self._nowhere(), self._rest)
            for rule, backend, networks in reversed(self._outside[1:]):
                self._route(rule, backend, networks)
            otherwise = self._outside[0][1]
        routes = (*self._by_network, *self._by_name)
        return Routing(binds=(self._bind,), routes=routes, backend=otherwise)

    def _route(self, rule: Rule, backend: Section, networks: Sequence[Placed[str]]) -> bool:
        left: list[Placed[str]] = []
        for each in networks:
            network = numbered(each.value)
            if not self._routed.cover(network):
                self._routed.add(network)
                left.append(each)
        if left:
            self._by_network.append(Route(backend=backend, rule=rule, networks=tuple(left)))
        return bool(left)


def _report_changes(section: Section, routes: Sequence[Route], report: Report) -> None:
    """Report the differences: case, and that we wait for the name."""
    for route in routes:
        if route.names.cased:
            report.add(Outcome.CHANGED, route.rule.line.place, _CASED)
    delay = section.settings.times.get(DELAY)
    waiting = [route for route in routes if not route.networks]
    if waiting and not (delay and delay.value and section.rules.get(Level.CONTENT)):
        report.add(Outcome.CHANGED, waiting[0].rule.line.place, _NOT_WAITED)
