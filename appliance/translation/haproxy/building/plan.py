"""What each section becomes, and its name: a frontend, a pool, an answer, the statistics, or nothing."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from appliance.model.messages.problems import nearest
from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.directives.section import Kind, Said, Section
from appliance.translation.haproxy.directives.sections import Sections
from appliance.translation.haproxy.text.report import Report
from appliance.translation.haproxy.values.names import our_name
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

    def pool_name(self, section: Section) -> str:
        """Return the name with us of a section with servers."""
        return next(name for name, each in self.pools.items() if each is section)

    def fronts_of(self, section: Section) -> list[Front]:
        """Return the fronts that forward to a section."""
        return [each for each in self.fronts if each.role is Role.FORWARD and each.pool is section]

    def is_ingress(self, front: Front) -> bool:
        """Tell whether a front belongs to `ingress`: it, or one with the same servers, has port 80 or 443."""
        others = self.fronts_of(front.pool) if front.pool is not None else []
        return any(each.ports & INGRESS_PORTS for each in (front, *others))


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
        for section in self._sections:
            if section.kind is not Kind.FRONTEND and self._is_pool(section):
                self._plan.pools[our_name(section.name, self._plan.pools)] = section
        names: set[str] = set()
        for section in self._sections:
            if section.kind.takes_clients:
                front = self._front(section, our_name(section.name, names))
                names.add(front.name)
                self._plan.fronts.append(front)
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
        if target not in self._plan.pools.values():
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
        meant = nearest(said.value, self._backends)
        hint = f": did you mean {shown(meant)}?" if meant else ""
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
            pool = section in self._plan.pools.values()
            if section.kind is Kind.BACKEND and not pool and not section.servers and not section.template:
                used = section.settings.stats.on is not None
                for line in (section.header, *section.lines):
                    if used and line is section.header:
                        continue
                    self._report.leave_out(
                        line.number,
                        "this backend has no servers, only the statistics, which have a key of their own",
                    )
