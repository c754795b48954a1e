"""Rules for frontends: what they serve, their names, and who may reach port 22623, which serves secrets."""

from collections.abc import Iterator
from typing import Final

from appliance.model.config.configuration import Config
from appliance.model.config.frontends import FrontendSection
from appliance.model.messages.problems import Finding, FindingTarget, Path
from appliance.model.network_cover import NetworkCover, numbered
from appliance.model.rules.findings import key_error, warning
from appliance.model.rules.references import frontends, servers_of, unknown_pool

MACHINE_CONFIG_PORT: Final = 22623
"""OpenShift's machine-config-server: hands Ignition files, which contain secrets, to any client."""

_EVERYBODY: Final = frozenset({"0.0.0.0/0", "::/0"})


def findings(config: Config) -> Iterator[Finding]:
    """Yield contradictions in and between frontends."""
    for path, frontend in frontends(config):
        yield from _target(path, frontend, config)
    yield from _same_names(config)
    for path, frontend in frontends(config):
        yield from _open_machine_config(path, frontend, config)


def _target(path: Path, frontend: FrontendSection, config: Config) -> Iterator[Finding]:
    if not frontend.bind:
        message = 'must name an address to listen on: for example `bind: ["[::]:9445"]`'
        yield Finding(path=(*path, "bind"), message=message)
    if frontend.pool is None and frontend.respond is None:
        message = "must have `pool` (the servers) or `respond` (the response)"
        yield Finding(path=path, message=message, touches=((*path, "pool"), (*path, "respond")))
    if frontend.pool is not None and frontend.respond is not None:
        yield Finding(path=path, message="has both `pool` and `respond`: a frontend forwards or answers")
    if frontend.needs is not None and frontend.respond is None:
        message = "`needs` belongs to `respond`: without it there is no response to withhold"
        yield Finding(
            path=(*path, "needs"), message=message, spot=FindingTarget.KEY, touches=((*path, "respond"),)
        )
    for key, name in (("pool", frontend.pool), ("needs", frontend.needs)):
        if name is not None and name not in config.pools:
            yield unknown_pool((*path, key), name, config)
    yield from _routes(path, frontend, config)
    yield from _never_matching(path, frontend)


def _routes(path: Path, frontend: FrontendSection, config: Config) -> Iterator[Finding]:
    for key, routes in (("clients", frontend.clients), ("sni", frontend.sni)):
        for index, pool in enumerate(each.pool for each in routes):
            if pool not in config.pools:
                yield unknown_pool((*path, key, index, "pool"), pool, config)
        if routes and frontend.respond is not None:
            message = f"has both `{key}` and `respond`: a frontend forwards or answers"
            yield key_error((*path, key), message, (*path, "respond"))
    if "hello" in frontend.timeouts.model_fields_set and not frontend.sni:
        yield warning(
            (*path, "timeouts", "hello"), "has no effect without `sni`: the proxy waits for nothing", path
        )


def _never_matching(path: Path, frontend: FrontendSection) -> Iterator[Finding]:
    """Warn of networks whose clients an earlier route has: once for each route, which may have thousands."""
    earlier = NetworkCover()
    for index, route in enumerate(frontend.clients):
        networks = [numbered(each) for each in route.networks]
        covered = [position for position, each in enumerate(networks) if earlier.cover(each)]
        if covered:
            never = f" and {len(covered) - 1} others never match" if len(covered) > 1 else " never matches"
            message = f"`{route.networks[covered[0]]}`{never}: an earlier entry has its clients"
            yield warning((*path, "clients", index, "networks", covered[0]), message)
        for each in networks:
            earlier.add(each)


def _same_names(config: Config) -> Iterator[Finding]:
    if config.api is None or config.ingress is None:
        return
    for name in config.ingress.frontends:
        if name in config.api.frontends:
            message = f"`{name}` is already a frontend of `api`: commands and logs need different names"
            yield Finding(path=("ingress", "frontends", name), message=message)


def _open_machine_config(path: Path, frontend: FrontendSection, config: Config) -> Iterator[Finding]:
    ports: set[int | str | None] = {endpoint.port for endpoint in frontend.bind}
    ports |= {server.address.port for _, _, server in servers_of(frontend, config)}
    found = [config.pools[name].servers.discover for name in frontend.pools if name in config.pools]
    ports |= {each.port for each in found if each is not None}
    if MACHINE_CONFIG_PORT not in ports:
        return
    for index, network in enumerate(frontend.allow):
        if network in _EVERYBODY:
            message = f"`{network}` allows everybody: port {MACHINE_CONFIG_PORT} serves secrets"
            yield warning((*path, "allow", index), message)
    if not frontend.allow:
        message = (
            f"port {MACHINE_CONFIG_PORT} serves machine configuration, which holds secrets: set who may "
            "connect, for example `allow: [10.0.0.0/24]`"
        )
        yield Finding(path=path, message=message, touches=((*path, "allow"),))
