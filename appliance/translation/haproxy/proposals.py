"""Improvements to what haproxy.cfg says: never a part of the translation, and each with its line.

The reasons are from OpenShift's own documents: `docs/dev/kube-apiserver-health-check.md` of its installer,
and its page on load balancers for user-provisioned infrastructure.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from appliance.model.messages.problems import FilePosition
from appliance.model.messages.quoting import shown
from appliance.model.rules.frontend_rules import MACHINE_CONFIG_PORT
from appliance.translation.haproxy.building.plan import Front, Plan
from appliance.translation.haproxy.directives.section import CheckKind, Section, Server
from appliance.translation.haproxy.values.quantities import duration
from appliance.translation.translation import INGRESS_PORTS, Proposal

API_PORT: Final = 6443
"""Port of the Kubernetes API on masters."""

_LIMIT: Final = 250
"""Concurrent connections: many files have a limit of this size, copied from a sample for HTTP."""

_SILENCE: Final = 10 * 60 * 1000
"""Milliseconds: `oc logs -f` and watches are silent for longer than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    """A pool, its name, and the frontends that forward to it."""

    name: str
    section: Section
    fronts: tuple[Front, ...]

    @property
    def ports(self) -> frozenset[int]:
        """The ports of its servers."""
        return frozenset(each.target.port for each in self.section.servers.values() if each.target.port)

    @property
    def is_api(self) -> bool:
        """Whether it serves the Kubernetes API."""
        return API_PORT in self.ports

    @property
    def place(self) -> FilePosition:
        """Where its section begins."""
        return self.section.header.place

    def example(self, *lines: str) -> str:
        """Return YAML for this pool."""
        return "\n".join(("pools:", f"  {self.name}:", *(f"    {each}" for each in lines)))


def proposals(plan: Plan) -> tuple[Proposal, ...]:
    """Return possible improvements, pool by pool, in the order of the file.

    Of a section that becomes one pool for each of its ports, only the first pool is looked at.
    """
    pools: dict[int, _Pool] = {}
    for name, section in plan.pools.items():
        pool = _Pool(name=name, section=section, fronts=tuple(plan.fronts_of(section)))
        pools.setdefault(section.header.number, pool)
    return tuple(each for pool in pools.values() for propose in _PROPOSALS for each in propose(pool))


def _readyz(pool: _Pool) -> Iterator[Proposal]:
    check = pool.section.settings.check
    asks = check.kind is not None and check.kind.value is CheckKind.HTTP
    path = check.path.value if asks and check.path else ""
    if pool.is_api and path != "/readyz":
        now = f"requests {shown(path)}" if path else "does not query the API server"
        yield Proposal(
            name="readyz",
            message=(
                f"the check of {shown(pool.name)} {now}: only `/readyz` fails when an API server is "
                "about to stop, so no client reaches a closed port"
            ),
            place=check.path.place if path and check.path else pool.place,
            example=pool.example("check: {type: https, path: /readyz, interval: 5s, fall: 3, rise: 1}"),
        )


def _machine_config(pool: _Pool) -> Iterator[Proposal]:
    if MACHINE_CONFIG_PORT not in pool.ports | {port for front in pool.fronts for port in front.ports}:
        return
    for front in pool.fronts:
        if not (front.access.allow or front.access.deny):
            yield Proposal(
                name="machine-config-allow",
                message=(
                    f"port {MACHINE_CONFIG_PORT} gives cluster secrets to every client that can connect: "
                    "allow only the networks of the nodes"
                ),
                place=front.section.binds[0].place,
                example=f"api:\n  frontends:\n    {front.name}:\n      allow: [10.0.0.0/24]",
            )


def _routers(pool: _Pool) -> Iterator[Proposal]:
    own_port = any("port" in each.options.numbers for each in pool.section.servers.values())
    check = pool.section.settings.check
    if not pool.ports & INGRESS_PORTS or own_port or check.port or check.kind:
        return
    yield Proposal(
        name="router-ready",
        message=(
            f"the check of {shown(pool.name)} shows that a router listens, not that it serves: its "
            "port 1936 reports that it is ready, and 45 seconds before it stops that it no longer is"
        ),
        place=pool.place,
        example=pool.example(
            "check: {type: http, port: 1936, path: /healthz/ready, interval: 5s, timeout: 5s}"
        ),
    )


def _bootstrap(pool: _Pool) -> Iterator[Proposal]:
    for server in pool.section.servers.values():
        if "bootstrap" in server.name.lower():
            yield Proposal(
                name="bootstrap-server",
                message=f"{shown(server.name)} is needed only until the cluster is installed: remove it then",
                place=server.line.place,
            )


def _limits(pool: _Pool) -> Iterator[Proposal]:
    limited = next(filter(_is_limited, pool.section.servers.values()), None)
    if limited is not None:
        given = limited.options.numbers["maxconn"]
        yield Proposal(
            name="copied-limit",
            message=(
                f"`maxconn {given.value}` limits each server of {shown(pool.name)}: further connections "
                "wait, and nodes and operators keep hundreds of watches open; remove it, or allow "
                "thousands"
            ),
            place=given.place,
            example=pool.example("servers:", f"  {limited.name}: {{max_connections: 0}}"),
        )


def _is_limited(server: Server) -> bool:
    given = server.options.numbers.get("maxconn")
    return given is not None and 0 < given.value <= _LIMIT


def _timeouts(pool: _Pool) -> Iterator[Proposal]:
    times = pool.section.settings.times
    given = times.get("tunnel") or times.get("server")
    if pool.is_api and given and 0 < given.value <= _SILENCE:
        yield Proposal(
            name="short-timeouts",
            message=(
                f"sessions of {shown(pool.name)} are closed after {duration(given.value)} of silence: "
                "`oc logs -f`, `oc exec` and watches are silent for longer"
            ),
            place=given.place,
            example="defaults:\n  timeouts: {client: 24h, server: 24h}",
        )


def _on_down(pool: _Pool) -> Iterator[Proposal]:
    checked = [each for each in pool.section.servers.values() if each.options.flag("check")]
    if checked and not any("on-marked-down" in each.options.texts for each in checked):
        yield Proposal(
            name="on-down",
            message=(
                f"sessions on an unreachable server of {shown(pool.name)} hang until their timeout: "
                "`auto` closes them, and keeps those on a server that only answers badly"
            ),
            place=pool.place,
            example=pool.example("on_down: auto"),
        )


def _persistence(pool: _Pool) -> Iterator[Proposal]:
    given = pool.section.settings.texts.get("balance")
    if pool.is_api and given and given.value == "source":
        yield Proposal(
            name="api-persistence",
            message=(
                f"`balance source` sends all nodes behind one address to one server of {shown(pool.name)}: "
                "the API needs no persistence, and is faster without"
            ),
            place=given.place,
            example=pool.example("balance: roundrobin"),
        )


_PROPOSALS: Final[tuple[Callable[[_Pool], Iterator[Proposal]], ...]] = (
    _readyz,
    _machine_config,
    _routers,
    _bootstrap,
    _limits,
    _timeouts,
    _on_down,
    _persistence,
)
