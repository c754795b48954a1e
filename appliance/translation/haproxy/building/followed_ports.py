"""Servers without a port: connections keep the port that the client used (configuration.txt, server).

A server of ours has one port. If clients use several ports, each port gets its own frontend and pool, with
the servers at that port: a client of port 30005 is connected to port 30005.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from appliance.model.config.values.addresses import Endpoint
from appliance.translation.haproxy.directives.section import Bind, Kind, Section, Server, Settings
from appliance.translation.haproxy.text.report import Report
from appliance.translation.haproxy.values.endpoints import ServerTarget
from appliance.translation.haproxy.values.names import Names
from appliance.translation.translation import Outcome

MOST_PORTS: Final = 128
"""Ports of one backend: each becomes a pool with its own checks."""

MOST_SERVERS: Final = 1024
"""Servers of all pools made in this way."""

_LEADING: Final = ("use_backend", "default_backend")


def spread(sections: Sequence[Section], report: Report) -> list[Section]:
    """Return the sections, with one copy for each port in place of each section that needs it."""
    return _Spreading(sections, report).sections()


class _Spreading:
    def __init__(self, sections: Sequence[Section], report: Report) -> None:
        self._sections = sections
        self._report = report
        names = [each.name for each in sections]
        self._fronts, self._backs = Names(*names), Names(*names)
        self._pools = self._spread_pools()

    def sections(self) -> list[Section]:
        return [each for section in self._sections for each in self._copies(section)]

    def _spread_pools(self) -> dict[str, dict[int, Section]]:
        """Return the copies, by port, of each section whose servers keep several client ports."""
        ports: dict[str, set[int]] = {}
        for section in self._sections:
            for target in () if section.reads_http else _targets(section):
                ports.setdefault(target, set()).update(_ports(section))
        left = MOST_SERVERS
        found: dict[str, dict[int, Section]] = {}
        for section in filter(_follows, self._sections):
            every = sorted(ports.get(section.name, ()))
            left -= len(every) * len(section.servers)
            if 1 < len(every) <= MOST_PORTS and left >= 0:
                binds = _binds_by_port(section)
                found[section.name] = {port: self._pool(section, port, binds.get(port, [])) for port in every}
                self._report_changes(section, list(found[section.name].values()))
        return found

    def _pool(self, section: Section, port: int, binds: list[Bind]) -> Section:
        """Return the servers of a section at one port; a `listen` with that port listens there."""
        return replace(
            section,
            kind=Kind.LISTEN if binds else Kind.BACKEND,
            name=self._backs.ours(f"{section.name}-{port}"),
            binds=binds,
            servers={name: _at_port(each, port) for name, each in section.servers.items()},
        )

    def _copies(self, section: Section) -> Iterator[Section]:
        if section.name in self._pools and section.kind.has_servers:
            yield from self._pools[section.name].values()
            return
        leads_there = not section.reads_http and not self._pools.keys().isdisjoint(_targets(section))
        if not leads_there or section.servers:
            yield replace(section, kind=Kind.BACKEND, binds=[]) if leads_there else section
        for port, binds in _binds_by_port(section).items() if leads_there else ():
            yield replace(
                section,
                kind=Kind.FRONTEND,
                name=self._fronts.ours(f"{section.name}-{port}"),
                binds=binds,
                settings=self._settings(section, port),
                routes=[replace(rule, verb=self._at(rule.verb, port)) for rule in section.routes],
                servers={},
            )

    def _settings(self, section: Section, port: int) -> Settings:
        texts = {
            key: replace(given, value=self._at(given.value, port)) if key in _LEADING else given
            for key, given in section.settings.texts.items()
        }
        return replace(section.settings, texts=texts)

    def _at(self, name: str, port: int) -> str:
        """Return the name of the pool for a section's clients of one port."""
        return self._pools[name][port].name if name in self._pools else name

    def _report_changes(self, section: Section, pools: Sequence[Section]) -> None:
        reason = (
            f"connections go to the port that the client used: each of the {len(pools)} ports gets a "
            f"frontend and a pool, `{pools[0].name}` to `{pools[-1].name}`, with separate limits and "
            "checks"
        )
        for name, server in section.servers.items():
            if server.target.port is None and all(each.servers[name].target.port for each in pools):
                self._report.add(Outcome.CHANGED, server.line.at(2), reason)


def _target(section: Section) -> str | None:
    """Return the name of the section whose servers get the clients of this one."""
    given = section.settings.backend if section.kind.takes_clients else None
    if given is not None:
        return given.value
    return section.name if section.kind is Kind.LISTEN else None


def _targets(section: Section) -> set[str]:
    """Return the names of all sections that get clients of this one."""
    return {rule.verb for rule in section.routes} | set(filter(None, [_target(section)]))


def _follows(section: Section) -> bool:
    """Return whether a section connects clients to a server without a port."""
    if not section.kind.has_servers or _target(section) not in {None, section.name}:
        return False
    return not section.reads_http and any(each.target.port is None for each in section.servers.values())


def _ports(section: Section) -> set[int]:
    return {each.port for bind in section.binds for each in bind.endpoints}


def _binds_by_port(section: Section) -> dict[int, list[Bind]]:
    """Return the binds of a section by port, in the order of the ports, each reduced to that port."""
    found: dict[int, list[Bind]] = {port: [] for port in sorted(_ports(section))}
    for bind in section.binds:
        endpoints: dict[int, list[Endpoint]] = {}
        for each in bind.endpoints:
            endpoints.setdefault(each.port, []).append(each)
        for port, every in endpoints.items():
            found[port].append(replace(bind, endpoints=tuple(every)))
    return found


def _at_port(server: Server, port: int) -> Server:
    """Return a server with the port of its clients, or unchanged if it cannot have that port."""
    there = port + server.target.offset
    if server.target.port is not None or not 1 <= there <= 65535:
        return server
    return replace(server, target=ServerTarget(host=server.target.host, port=there))
