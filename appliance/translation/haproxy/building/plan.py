"""What each section becomes, and its name: a frontend, a pool, an answer, the statistics, or nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Final

from appliance.model.config.values.addresses import Endpoint
from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.building.access import Access, access, both, page_access
from appliance.translation.haproxy.building.client_networks import ClientNetworks
from appliance.translation.haproxy.building.followed_ports import spread
from appliance.translation.haproxy.building.listened_addresses import listened
from appliance.translation.haproxy.building.routing import Route, Routing, RoutingError, Targets, routings
from appliance.translation.haproxy.directives.section import Kind, Level, Placed, Section
from appliance.translation.haproxy.directives.sections import Sections
from appliance.translation.haproxy.text.report import Report
from appliance.translation.haproxy.values.names import Names
from appliance.translation.translation import INGRESS_PORTS, Outcome

_KEEPING_OUT: Final = frozenset({"deny", "auth", "reject", "tarpit", "silent-drop"})
_NO_BIND: Final = "no valid `bind`: no client can connect, and the section is left out"
_NOT_SAID: Final = "its access rules cannot be translated as strictly: the section is left out"
_ROUTE_REFUSED: Final = "one of its routing rules is refused: the section is left out"
_ROUTED_BY_HTTP: Final = "HTTP requests are not read here: write `mode tcp`, and `req.ssl_sni`"
_DIFFERENT_CLIENTS: Final = (
    "its backends have different access rules: here a frontend has one set of rules for all its "
    "backends; give them separate frontends"
)
_NOWHERE: Final = "there is no `default_backend`: connections that match no rule are closed (`nowhere`)"
_CLOSED: Final = "such connections are closed, as this pool has no servers"
_NOT_SHOWN: Final = "the page's access rules cannot be translated as strictly: the statistics are left out"


class Role(StrEnum):
    """The service that clients of a section get."""

    FORWARD = "forward"
    RESPOND = "respond"
    STATS = "stats"
    NOTHING = "nothing"


@dataclass(slots=True, kw_only=True)
class Front:
    """A section that accepts clients.

    `pool` is the section with its servers, `routes` send clients to others, and `pages` are the sections
    whose statistics it shows.
    """

    section: Section
    name: str
    role: Role
    pool: Section | None = None
    routes: tuple[Route, ...] = ()
    binds: tuple[Placed[Endpoint], ...] = ()
    pages: tuple[Section, ...] = ()
    access: Access = field(default_factory=Access)

    @property
    def pools(self) -> tuple[Section, ...]:
        """The sections whose servers its clients can get."""
        found = (self.pool, *(each.backend for each in self.routes))
        return tuple({each.name: each for each in found if each is not None}.values())

    @property
    def ports(self) -> frozenset[int]:
        """The ports that it listens on."""
        return frozenset(each.value.port for each in self.binds)


@dataclass(slots=True, kw_only=True)
class Plan:
    """All fronts, and the sections with servers by our names."""

    fronts: list[Front] = field(default_factory=list)
    pools: dict[str, Section] = field(default_factory=dict)
    _named: dict[str, str] = field(default_factory=dict)
    _fronts_of: dict[str, list[Front]] = field(default_factory=dict)
    _ingress: set[str] = field(default_factory=set)

    def add_pool(self, name: str, section: Section) -> None:
        """Add a section with servers; a file has its name once."""
        self.pools[name] = section
        self._named[section.name] = name

    def add_front(self, front: Front) -> None:
        """Add a section that accepts clients."""
        self.fronts.append(front)
        for pool in front.pools:
            self._fronts_of.setdefault(pool.name, []).append(front)
            if front.ports & INGRESS_PORTS:
                self._ingress.add(pool.name)

    def pool_name(self, name: str) -> str | None:
        """Return our name of a section with servers, None if it is not served."""
        return self._named.get(name)

    def fronts_of(self, section: Section) -> list[Front]:
        """Return the fronts that forward to a section."""
        return self._fronts_of.get(section.name, [])

    def is_ingress(self, front: Front) -> bool:
        """Return whether a front is in `ingress`: it, or one with the same servers, has port 80 or 443."""
        if any(each.name in self._ingress for each in front.pools):
            return True
        return bool(front.ports & INGRESS_PORTS)


def planned(sections: Sections, networks: ClientNetworks, report: Report) -> Plan:
    """Return the plan of the sections that do not read HTTP; sections without effect are left out.

    Sections that a refused line protects are left out too: nothing is served to more clients than in the
    file.
    """
    return _Planner(sections, networks, report).plan()


class _Planner:
    def __init__(self, sections: Sections, networks: ClientNetworks, report: Report) -> None:
        self._report = report
        self._networks = networks
        enabled = [each for each in sections.proxies if not self._is_disabled(each)]
        self._sections = spread(enabled, report)
        self._backends = {each.name: each for each in self._sections if each.kind.has_servers}
        self._plan = Plan()
        self._shown: set[str] = set()
        self._taken: dict[Endpoint, int] = {}
        self._pools = Names()

    def plan(self) -> Plan:
        fronts = Names()
        for section in self._sections:
            if section.kind is not Kind.FRONTEND and self._is_pool(section):
                self._plan.add_pool(self._pools.ours(section.name), section)
        for section in self._sections:
            if section.kind.takes_clients:
                for front in self._fronts(section, fronts):
                    self._plan.add_front(front)
        self._renamed()
        self._unused()
        return self._plan

    def _is_disabled(self, section: Section) -> bool:
        given = section.settings.flags.get("disabled")
        if given is None or not section.is_disabled:
            return False
        self._report.use(given.place.line)
        self._leave_out(section, f"the section {shown(section.name)} is disabled: it is left out")
        return True

    def _is_pool(self, section: Section) -> bool:
        """Return whether a section's servers can be served; statistics have none."""
        if self._mode(section) == "http":
            return False
        return bool(section.servers) or section.kind is Kind.BACKEND or section.settings.backend is None

    def _mode(self, section: Section) -> str:
        given = section.settings.texts.get("mode")
        if given is None:
            return "tcp"
        self._report.use(given.place.line)
        return given.value

    def _fronts(self, section: Section, names: Names) -> tuple[Front, ...]:
        """Return what a section with clients becomes: one frontend, or several by port."""
        name = names.ours(section.name)
        binds = listened(section, self._taken, self._report)
        if self._mode(section) == "http" or not binds:
            return (self._front(section, name, binds),)
        try:
            default = self._default(section)
            targets = Targets(
                backends=self._backends, otherwise=default, nowhere=partial(self._nowhere, section)
            )
            found = routings(section, binds, targets, self._networks, self._report)
        except RoutingError:
            self._leave_out(section, _ROUTE_REFUSED)
            return (_nothing(section, name),)
        given = section.settings.texts.get("default_backend")
        if given and any(each.to_default for each in found):
            self._report.use(given.place.line)
        made = [self._routed(section, name, found[0])]
        for each in found[1:]:
            port = each.binds[0].value.port
            own = names.ours(f"{section.name}-{port}")
            reason = (
                f"port {port} has different rules: it becomes a frontend, {shown(own)}, with a separate limit"
            )
            self._report.add(Outcome.CHANGED, each.binds[0].place, reason)
            made.append(self._routed(section, own, each))
        if any(each.role is Role.NOTHING for each in made):
            return (_nothing(section, name),)
        return tuple(made)

    def _front(self, section: Section, name: str, binds: tuple[Placed[Endpoint], ...]) -> Front:
        """Return what a section in `mode http`, or one without a bind, becomes."""
        target = self._target(section) if binds else None
        for rule in section.routes if binds else ():
            if rule.condition:
                self._report.add(Outcome.REFUSED, rule.line.place, _ROUTED_BY_HTTP)
                self._leave_out(section, _ROUTE_REFUSED)
                return _nothing(section, name)
        reason = self._why_not(section, [target] if target else []) if binds else _NO_BIND
        if reason is not None:
            self._leave_out(section, reason)
            return _nothing(section, name)
        return replace(self._of_http(section, target, name), binds=binds)

    def _routed(self, section: Section, name: str, routing: Routing) -> Front:
        """Return the frontend for addresses whose clients have the same routes."""
        backend = routing.backend or (self._nowhere(section) if routing.routes else None)
        front = Front(
            section=section,
            name=name,
            role=Role.FORWARD,
            pool=backend,
            routes=routing.routes,
            binds=routing.binds,
        )
        reason = self._why_not(section, front.pools)
        if reason is not None:
            self._leave_out(section, reason)
        elif self._obeys_no_http(section, front.pools):
            lists = self._access(section, front.pools)
            if lists is not None:
                return replace(front, access=lists)
            self._leave_out(section, _NOT_SAID)
        return _nothing(section, name)

    def _access(self, section: Section, pools: Sequence[Section]) -> Access | None:
        """Return who may connect, which must be the same for all backends of a section."""
        served = [each for each in pools if not self._closes(each)] or (None,)
        found = [access(section, each, self._networks, self._report) for each in served]
        first = found[0]
        if first is None or None in found:
            return None
        if any(each and not each.equals(first) for each in found):
            place = section.routes[0].line.place
            self._report.add(Outcome.REFUSED, place, _DIFFERENT_CLIENTS)
            return None
        return first

    def _closes(self, section: Section) -> bool:
        """Return whether a backend only rejects connections, and has no servers: they are closed here too."""
        rules = section.rules.get(Level.CONTENT, [])
        if section.servers or section.template or [rule.verb for rule in rules] != ["reject"]:
            return False
        if rules[0].condition:
            return False
        self._report.use(rules[0].line.number)
        self._report.add(Outcome.CHANGED, rules[0].line.place, _CLOSED)
        return True

    def _nowhere(self, section: Section) -> Section:
        """Return a backend without servers: like HAProxy it closes connections that match no rule."""
        place = section.routes[0].line.place
        self._report.add(Outcome.CHANGED, place, _NOWHERE)
        made = Section(
            kind=Kind.BACKEND,
            name=f"{section.name} nowhere",
            header=section.header,
            settings=section.settings.handed_on(),
        )
        if self._plan.pool_name(made.name) is None:
            self._plan.add_pool(self._pools.ours(f"{section.name}-nowhere"), made)
        return made

    def _why_not(self, section: Section, targets: Sequence[Section]) -> str | None:
        """Return why a section can serve no client, None if it can serve some."""
        unguarded = [each for each in (section, *targets) if each.settings.unguarded]
        if unguarded:
            # Further refusals are reported at the same time.
            for target in targets or (None,):
                access(section, target, self._networks, self._report)
            name = self._report.line_name(unguarded[0].settings.unguarded or 0)
            return f"{name} is refused and may restrict who connects: the section is left out"
        if self._mode(section) == "http":
            return None
        if not targets:
            return "no backend: every connection would be closed, and the section is left out"
        lost = next((each for each in targets if self._plan.pool_name(each.name) is None), None)
        return f"its backend {shown(lost.name)} cannot be served" if lost else None

    def _obeys_no_http(self, section: Section, targets: Sequence[Section]) -> bool:
        """Return whether HTTP rules limit no client; in TCP HAProxy only warns of them, and lets all in."""
        owners = (section, *(each for each in targets if each is not section))
        rules = [rule for owner in owners for rule in owner.rules.get(Level.REQUEST, ())]
        keeping_out = [rule for rule in rules if rule.verb in _KEEPING_OUT]
        for rule in keeping_out:
            reason = (
                "in `mode tcp` HAProxy ignores it with a warning and rejects nobody; write "
                f"`{Level.CONNECTION} reject` by `src`, or remove it"
            )
            self._report.add(Outcome.REFUSED, rule.line.place, reason)
        if keeping_out:
            self._leave_out(section, _NOT_SAID)
        return not keeping_out

    def _target(self, section: Section) -> Section | None:
        """Return the section whose servers get the clients of this one: the default backend, or itself."""
        given = section.settings.backend
        if given is None:
            return section if section.kind is Kind.LISTEN else None
        self._report.use(given.place.line)
        found = self._backends.get(given.value)
        if found is None:
            self._missing(given)
        return found

    def _default(self, section: Section) -> Section | None:
        """Return the section whose servers get the clients that no rule sends elsewhere."""
        given = section.settings.texts.get("default_backend")
        if given is None:
            return section if section.kind is Kind.LISTEN else None
        if given.value not in self._backends and all(rule.condition for rule in section.routes):
            self._missing(given)
        return self._backends.get(given.value)

    def _missing(self, given: Placed[str]) -> None:
        hint = self._report.meant(given.value, self._backends)
        self._report.add(Outcome.REFUSED, given.place, f"there is no backend {shown(given.value)}{hint}")

    def _of_http(self, section: Section, target: Section | None, name: str) -> Front:
        """Return what answers HTTP: statistics, a monitor, or both at one address."""
        owners = [section] if target is None or target is section else [section, target]
        pages = tuple(each for each in owners if each.settings.stats.on)
        monitor = "monitor-uri" in section.settings.texts
        lists = access(section, target, self._networks, self._report)
        if lists is None:
            self._leave_out(section, _NOT_SAID)
            return _nothing(section, name)
        shown_to = self._page_access(section, target, lists) if self._shows_all(pages) else None
        if shown_to is not None:
            self._shown.update(each.name for each in pages)
            return Front(section=section, name=name, role=Role.STATS, pages=pages, access=shown_to)
        if monitor:
            for on in filter(None, (each.settings.stats.on for each in pages)):
                self._report.add(Outcome.CHANGED, on.place, _NOT_SHOWN)
            return Front(section=section, name=name, role=Role.RESPOND, access=lists)
        self._leave_out(section, _NOT_SHOWN)
        self._report.leave_out(section.header.number, _NOT_SHOWN, Outcome.CHANGED)
        return _nothing(section, name)

    def _shows_all(self, pages: Sequence[Section]) -> bool:
        """Return whether a page shows all sections to every client that may see it."""
        scopes = [each.settings.stats.scope for each in pages]
        for given in filter(None, scopes):
            self._report.add(
                Outcome.CHANGED, given.place, "the page cannot show only some sections: " + _NOT_SHOWN
            )
        return bool(pages) and not any(scopes)

    def _page_access(self, section: Section, target: Section | None, lists: Access) -> Access | None:
        """Return who may see statistics; None if no lists express it, or a monitor serves others too."""
        found = page_access(section, target, self._networks, self._report)
        if found is not None and "monitor-uri" in section.settings.texts and (found.allow or found.deny):
            found = None
        return both(lists, found, self._report) if found is not None else None

    def _leave_out(self, section: Section, reason: str) -> None:
        for line in (section.header, *section.lines):
            self._report.leave_out(line.number, reason)

    def _renamed(self) -> None:
        named = {id(front.section): (front.name, front.section) for front in reversed(self._plan.fronts)}
        pools = [each for each in self._plan.pools.items() if " " not in each[1].name]
        for name, section in (*reversed(named.values()), *pools):
            if name != section.name:
                reason = f"the name is {shown(name)} here: names are unique and have no colons"
                self._report.add(Outcome.CHANGED, section.header.at(1), reason)

    def _unused(self) -> None:
        """Leave out backends without servers, which are no pools, unless frontends show their statistics."""
        for section in self._backends.values():
            used = self._plan.pool_name(section.name) is not None or section.name in self._shown
            if section.kind is Kind.BACKEND and not used and not section.servers and not section.template:
                self._leave_out(section, "this backend has no servers, and no page shows its statistics")


def _nothing(section: Section, name: str) -> Front:
    return Front(section=section, name=name, role=Role.NOTHING)
