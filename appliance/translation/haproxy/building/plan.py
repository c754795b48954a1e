"""What each section becomes, and its name: a frontend, a pool, an answer, the statistics, or nothing."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.directives.section import Kind, Said, Section
from appliance.translation.haproxy.directives.sections import Sections
from appliance.translation.haproxy.text.report import Report
from appliance.translation.haproxy.values.names import Names
from appliance.translation.translation import Outcome

INGRESS_PORTS: Final = frozenset({80, 443})


class Role(StrEnum):
    """What clients of a section get."""

    FORWARD = "forward"
    RESPOND = "respond"
    STATS = "stats"
    NOTHING = "nothing"


@dataclass(slots=True, kw_only=True)
class Front:
    """A section that takes clients; `pool` is the section with its servers."""

    section: Section
    name: str
    role: Role
    pool: Section | None = None

    @property
    def ports(self) -> frozenset[int]:
        """The ports that it listens on."""
        return frozenset(each.port for bind in self.section.binds for each in bind.endpoints)


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


def planned(sections: Sections, report: Report) -> Plan:
    """Return the plan; sections that cannot be served are refused, and those that do nothing left out."""
    return _Planner(sections, report).plan()


class _Planner:
    def __init__(self, sections: Sections, report: Report) -> None:
        self._report = report
        self._sections = [each for each in sections.proxies if not self._is_disabled(each)]
        self._backends = {each.name: each for each in self._sections if each.kind.has_servers}
        self._plan = Plan()

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
        if said is None or not said.value:
            return False
        self._report.use(said.place.line)
        self._leave_out(section, f"the section {shown(section.name)} is disabled: it is left out")
        return True

    def _is_pool(self, section: Section) -> bool:
        """Tell whether a section's servers can be served; http is refused, and statistics have none."""
        if self._mode(section) == "tcp":
            return bool(section.servers) or section.kind is Kind.BACKEND or not self._elsewhere(section)
        if not section.servers and not section.template:
            return False
        if section.kind is Kind.BACKEND:
            self._refuse_http(section)
        return False

    def _elsewhere(self, section: Section) -> bool:
        return "default_backend" in section.settings.texts

    def _mode(self, section: Section) -> str:
        said = section.settings.texts.get("mode")
        if said is None:
            return "tcp"
        self._report.use(said.place.line)
        return said.value

    def _front(self, section: Section, name: str) -> Front:
        if not section.binds:
            self._leave_out(section, "no `bind` that holds: nobody can connect, and the section is left out")
            return Front(section=section, name=name, role=Role.NOTHING)
        target = self._target(section)
        if self._mode(section) == "http":
            return Front(section=section, name=name, role=self._http_role(section, target))
        if target is None:
            self._leave_out(
                section, "no backend: every connection would be closed, and the section is left out"
            )
            return Front(section=section, name=name, role=Role.NOTHING)
        if self._plan.pool_name(target.name) is None:
            self._leave_out(section, f"its backend {shown(target.name)} cannot be served")
            return Front(section=section, name=name, role=Role.NOTHING)
        return Front(section=section, name=name, role=Role.FORWARD, pool=target)

    def _target(self, section: Section) -> Section | None:
        """Return the section whose servers take the clients of one: the default backend, or its own."""
        said = section.settings.texts.get("default_backend")
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

    def _http_role(self, section: Section, target: Section | None) -> Role:
        served = target is not None and bool(target.servers or target.template)
        stats = section.settings.stats.on or (target.settings.stats.on if target else None)
        if served or not (stats or "monitor-uri" in section.settings.texts):
            self._refuse_http(section)
            return Role.NOTHING
        return Role.RESPOND if "monitor-uri" in section.settings.texts else Role.STATS

    def _refuse_http(self, section: Section) -> None:
        said = section.settings.texts["mode"]
        own = said.place.line > section.header.number
        self._report.say(
            Outcome.REFUSED,
            said.place if own else section.header.at(1),
            f"the {section.kind} {shown(section.name)} runs in `mode http`"
            f"{'' if own else f' by line {said.place.line}'}: HTTP is not read here; write `mode tcp`, which "
            "leaves HTTP and TLS to the servers",
        )

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
        """Note that backends without servers that nothing forwards to are no pools: they hold statistics."""
        for section in self._backends.values():
            pool = self._plan.pool_name(section.name) is not None
            if section.kind is Kind.BACKEND and not pool and not section.servers and not section.template:
                used = section.settings.stats.on is not None
                for line in (section.header, *section.lines):
                    if used and line is section.header:
                        continue
                    self._report.leave_out(
                        line.number,
                        "this backend has no servers, only the statistics, which have a key of their own",
                    )
