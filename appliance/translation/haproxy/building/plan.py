"""What each section becomes, and its name: a frontend, a pool, an answer, the statistics, or nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from appliance.model.config.values.addresses import Endpoint
from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.building.access import Access, access, both, page_access
from appliance.translation.haproxy.building.client_networks import ClientNetworks
from appliance.translation.haproxy.building.followed_ports import spread
from appliance.translation.haproxy.building.listened_addresses import listened
from appliance.translation.haproxy.building.values import Placed
from appliance.translation.haproxy.directives.section import Kind, Level, Said, Section
from appliance.translation.haproxy.directives.sections import Sections
from appliance.translation.haproxy.text.report import Report
from appliance.translation.haproxy.values.names import Names
from appliance.translation.translation import Outcome

INGRESS_PORTS: Final = frozenset({80, 443})

_KEEPING_OUT: Final = frozenset({"deny", "auth", "reject", "tarpit", "silent-drop"})
_NO_BIND: Final = "no `bind` that holds: nobody can connect, and the section is left out"
_NOT_SAID: Final = "who may connect cannot be said as strictly: the section is left out"
_NOT_SHOWN: Final = "who may look cannot be said as strictly: the statistics are left out"


class Role(StrEnum):
    """What clients of a section get."""

    FORWARD = "forward"
    RESPOND = "respond"
    STATS = "stats"
    NOTHING = "nothing"


@dataclass(slots=True, kw_only=True)
class Front:
    """A section that takes clients.

    `pool` is the section with its servers, `pages` are those whose statistics it shows.
    """

    section: Section
    name: str
    role: Role
    pool: Section | None = None
    binds: tuple[Placed[Endpoint], ...] = ()
    pages: tuple[Section, ...] = ()
    access: Access = field(default_factory=Access)

    @property
    def ports(self) -> frozenset[int]:
        """The ports that it listens on."""
        return frozenset(each.value.port for each in self.binds)


@dataclass(slots=True, kw_only=True)
class Plan:
    """All fronts, and the sections with servers by their names with us."""

    fronts: list[Front] = field(default_factory=list)
    pools: dict[str, Section] = field(default_factory=dict)
    _named: dict[str, str] = field(default_factory=dict)
    _fronts_of: dict[str, list[Front]] = field(default_factory=dict)
    _ingress: set[str] = field(default_factory=set)

    def add_pool(self, name: str, section: Section) -> None:
        """Add a section with servers; its own name is there once in a file."""
        self.pools[name] = section
        self._named[section.name] = name

    def add_front(self, front: Front) -> None:
        """Add a section that takes clients."""
        self.fronts.append(front)
        if front.pool is None:
            return
        self._fronts_of.setdefault(front.pool.name, []).append(front)
        if front.ports & INGRESS_PORTS:
            self._ingress.add(front.pool.name)

    def pool_name(self, name: str) -> str | None:
        """Return the name with us of a section with servers, None where it is not served."""
        return self._named.get(name)

    def fronts_of(self, section: Section) -> list[Front]:
        """Return the fronts that forward to a section."""
        return self._fronts_of.get(section.name, [])

    def is_ingress(self, front: Front) -> bool:
        """Tell whether a front belongs to `ingress`: it, or one with the same servers, has port 80 or 443."""
        if front.pool is not None and front.pool.name in self._ingress:
            return True
        return bool(front.ports & INGRESS_PORTS)


def planned(sections: Sections, networks: ClientNetworks, report: Report) -> Plan:
    """Return the plan of sections that read no HTTP; those that do nothing are left out.

    Left out is also what a refused line protects: nothing is served to more clients than the file has it.
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

    def plan(self) -> Plan:
        pools, fronts = Names(), Names()
        for section in self._sections:
            if section.kind is not Kind.FRONTEND and self._is_pool(section):
                self._plan.add_pool(pools.ours(section.name), section)
        for section in self._sections:
            if section.kind.takes_clients:
                self._plan.add_front(self._front(section, fronts.ours(section.name)))
        self._renamed()
        self._unused()
        return self._plan

    def _is_disabled(self, section: Section) -> bool:
        said = section.settings.flags.get("disabled")
        if said is None or not section.is_disabled:
            return False
        self._report.use(said.place.line)
        self._leave_out(section, f"the section {shown(section.name)} is disabled: it is left out")
        return True

    def _is_pool(self, section: Section) -> bool:
        """Tell whether a section's servers can be served; statistics have none."""
        if self._mode(section) == "http":
            return False
        return bool(section.servers) or section.kind is Kind.BACKEND or not self._elsewhere(section)

    def _elsewhere(self, section: Section) -> bool:
        return section.settings.backend is not None

    def _mode(self, section: Section) -> str:
        said = section.settings.texts.get("mode")
        if said is None:
            return "tcp"
        self._report.use(said.place.line)
        return said.value

    def _front(self, section: Section, name: str) -> Front:
        binds = listened(section, self._taken, self._report)
        target = self._target(section) if binds else None
        reason = self._why_not(section, target) if binds else _NO_BIND
        if reason is not None:
            self._leave_out(section, reason)
        elif self._mode(section) == "http":
            return replace(self._of_http(section, target, name), binds=binds)
        elif target is not None and self._obeys_no_http(section, target):
            lists = access(section, target, self._networks, self._report)
            if lists is not None:
                return Front(
                    section=section, name=name, role=Role.FORWARD, pool=target, binds=binds, access=lists
                )
            self._leave_out(section, _NOT_SAID)
        return _nothing(section, name)

    def _why_not(self, section: Section, target: Section | None) -> str | None:
        """Return why nobody can be served by a section, None where somebody can."""
        unguarded = section.settings.unguarded or (target.settings.unguarded if target else None)
        if unguarded:
            # What is refused besides is told at once.
            access(section, target, self._networks, self._report)
            name = self._report.line_name(unguarded)
            return f"{name}, which is refused, may say who may connect: the section is left out"
        if self._mode(section) == "http":
            return None
        if target is None:
            return "no backend: every connection would be closed, and the section is left out"
        if self._plan.pool_name(target.name) is None:
            return f"its backend {shown(target.name)} cannot be served"
        return None

    def _obeys_no_http(self, section: Section, target: Section) -> bool:
        """Tell whether no rule of HTTP says who may connect; in TCP HAProxy warns of it, and lets all in."""
        owners = (section,) if target is section else (section, target)
        rules = [rule for owner in owners for rule in owner.rules.get(Level.REQUEST, ())]
        keeping_out = [rule for rule in rules if rule.verb in _KEEPING_OUT]
        for rule in keeping_out:
            reason = (
                f"in `mode tcp` HAProxy does not do it, with a warning: nobody is kept out; write "
                f"`{Level.CONNECTION} reject` by `src`, or leave it out"
            )
            self._report.say(Outcome.REFUSED, rule.line.place, reason)
        if keeping_out:
            self._leave_out(section, _NOT_SAID)
        return not keeping_out

    def _target(self, section: Section) -> Section | None:
        """Return the section whose servers take the clients of one: the default backend, or its own."""
        said = section.settings.backend
        if said is None:
            return section if section.kind is Kind.LISTEN else None
        self._report.use(said.place.line)
        found = self._backends.get(said.value)
        if found is None:
            self._missing(said)
        return found

    def _missing(self, said: Said[str]) -> None:
        hint = self._report.meant(said.value, self._backends)
        self._report.say(Outcome.REFUSED, said.place, f"there is no backend {shown(said.value)}{hint}")

    def _of_http(self, section: Section, target: Section | None, name: str) -> Front:
        """Return what answers in HTTP: statistics, a monitor, or both at one address."""
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
                self._report.say(Outcome.CHANGED, on.place, _NOT_SHOWN)
            return Front(section=section, name=name, role=Role.RESPOND, access=lists)
        self._leave_out(section, _NOT_SHOWN)
        self._report.leave_out(section.header.number, _NOT_SHOWN, Outcome.CHANGED)
        return _nothing(section, name)

    def _shows_all(self, pages: Sequence[Section]) -> bool:
        """Tell whether there is a page that shows all sections to all who may look."""
        scopes = [each.settings.stats.scope for each in pages]
        for said in filter(None, scopes):
            self._report.say(Outcome.CHANGED, said.place, "no part of the sections is shown: " + _NOT_SHOWN)
        return bool(pages) and not any(scopes)

    def _page_access(self, section: Section, target: Section | None, lists: Access) -> Access | None:
        """Return who may look at statistics; None where that cannot be said, or is not who may connect."""
        found = page_access(section, target, self._networks, self._report)
        if found is not None and "monitor-uri" in section.settings.texts and (found.allow or found.deny):
            found = None
        return both(lists, found, self._report) if found is not None else None

    def _leave_out(self, section: Section, reason: str) -> None:
        for line in (section.header, *section.lines):
            self._report.leave_out(line.number, reason)

    def _renamed(self) -> None:
        named = [(front.name, front.section) for front in self._plan.fronts]
        for name, section in (*named, *self._plan.pools.items()):
            if name != section.name:
                reason = f"the name is {shown(name)} with us, where each is there once, without colons"
                self._report.say(Outcome.CHANGED, section.header.at(1), reason)

    def _unused(self) -> None:
        """Leave out backends without servers, which are no pools, unless frontends show their statistics."""
        for section in self._backends.values():
            used = self._plan.pool_name(section.name) is not None or section.name in self._shown
            if section.kind is Kind.BACKEND and not used and not section.servers and not section.template:
                self._leave_out(section, "this backend has no servers, and no statistics that are shown")


def _nothing(section: Section, name: str) -> Front:
    return Front(section=section, name=name, role=Role.NOTHING)
