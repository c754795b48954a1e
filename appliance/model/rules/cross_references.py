"""What no single key can tell: references, clashing binds, checks that contradict themselves.

Each rule yields findings. Errors are what could not work or would be dangerous; warnings what is probably
not meant.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final

from appliance.model.config.configuration import Config
from appliance.model.config.frontends import FrontendSection
from appliance.model.config.pools import CheckSection, PoolSection
from appliance.model.config.values.addresses import Endpoint, literal
from appliance.model.messages.problems import Finding, FindingTarget, Path, dotted
from appliance.model.rules.references import frontends, unknown_pool, warning
from appliance.model.rules.virtual_router_rules import router_findings
from appliance.model.snapshot.pools import Balance

MACHINE_CONFIG_PORT: Final = 22623
"""OpenShift's machine-config-server: hands Ignition files, which hold secrets, to whoever asks."""

_LOOPBACK: Final = frozenset({"127.0.0.1", "::1"})
_WIDE: Final = ("::", "0.0.0.0", "localhost", *sorted(_LOOPBACK))  # noqa: S104  # recognised, not bound
_EVERYBODY: Final = frozenset({"0.0.0.0/0", "::/0"})
_ASKING: Final = frozenset({"http", "https"})
_SHAKING: Final = frozenset({"tls", "https"})
_USERS: Final[tuple[Path, ...]] = (("api",), ("ingress",), ("virtual_ips",))
_ONLY_FOR: Final = {
    **dict.fromkeys(("method", "path", "host", "expect"), _ASKING),
    **dict.fromkeys(("sni", "verify"), _SHAKING),
}


def findings(config: Config) -> Iterator[Finding]:
    """Yield all that does not fit together."""
    clients = list(frontends(config))
    return chain(
        chain.from_iterable(_target(path, frontend, config) for path, frontend in clients),
        _same_names(config),
        _clashes(config),
        chain.from_iterable(_open_machine_config(path, frontend, config) for path, frontend in clients),
        chain.from_iterable(_loops(path, frontend, config) for path, frontend in clients),
        chain.from_iterable(_pool(name, pool) for name, pool in config.pools.items()),
        _unused(config),
        router_findings(config),
        _not_served(config),
    )


def _target(path: Path, frontend: FrontendSection, config: Config) -> Iterator[Finding]:
    if not frontend.bind:
        message = 'must name an address to listen on: for example `bind: ["[::]:9445"]`'
        yield Finding(path=(*path, "bind"), message=message)
    if frontend.pool is None and frontend.respond is None:
        message = "must say `pool` (who serves) or `respond` (what is answered)"
        yield Finding(path=path, message=message, touches=((*path, "pool"), (*path, "respond")))
    if frontend.pool is not None and frontend.respond is not None:
        yield Finding(path=path, message="has both `pool` and `respond`: a frontend forwards or answers")
    if frontend.needs is not None and frontend.respond is None:
        message = "`needs` belongs to `respond`: without it there is no answer to withhold"
        yield Finding(
            path=(*path, "needs"), message=message, spot=FindingTarget.KEY, touches=((*path, "respond"),)
        )
    for key, name in (("pool", frontend.pool), ("needs", frontend.needs)):
        if name is not None and name not in config.pools:
            yield unknown_pool((*path, key), name, config)


def _same_names(config: Config) -> Iterator[Finding]:
    if config.api is None or config.ingress is None:
        return
    for name in config.ingress.frontends:
        if name in config.api.frontends:
            message = f"`{name}` is a frontend of `api` already: commands and logs need names that differ"
            yield Finding(path=("ingress", "frontends", name), message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class _WrittenBind:
    path: Path
    endpoint: Endpoint


def _binds(config: Config) -> Iterator[_WrittenBind]:
    for path, frontend in frontends(config):
        for index, endpoint in enumerate(frontend.bind):
            yield _WrittenBind(path=(*path, "bind", index), endpoint=endpoint)
    if config.stats is not None:
        yield _WrittenBind(path=("stats", "bind"), endpoint=config.stats.bind)


def _clashes(config: Config) -> Iterator[Finding]:
    taken: dict[int, dict[str, _WrittenBind]] = {}  # by port, the first bind of each host
    for bind in _binds(config):
        others = taken.setdefault(bind.endpoint.port, {})
        first = _first_overlapping(bind.endpoint, others)
        if first is not None:
            yield Finding(path=bind.path, message=_clash(bind.endpoint, first), touches=(first.path,))
        others.setdefault(bind.endpoint.host, bind)


def _first_overlapping(endpoint: Endpoint, others: Mapping[str, _WrittenBind]) -> _WrittenBind | None:
    """Look under the few names that can clash; those that cover many are few themselves."""
    if endpoint.host in others:
        return others[endpoint.host]
    likely = others if endpoint.host in _WIDE else [host for host in _WIDE if host in others]
    return next((others[host] for host in likely if _overlap(others[host].endpoint, endpoint)), None)


def _clash(endpoint: Endpoint, first: _WrittenBind) -> str:
    where = dotted(first.path)
    if endpoint == first.endpoint:
        return f"`{endpoint}` is taken already by {where}"
    return f"`{endpoint}` clashes with `{first.endpoint}` of {where}: one covers the other"


def _overlap(one: Endpoint, other: Endpoint) -> bool:
    """Tell whether two binds of one port take the same connections; `::` is dual-stack."""
    hosts = {one.host, other.host}
    if len(hosts) == 1 or "::" in hosts:
        return True
    if "0.0.0.0" in hosts:  # noqa: S104  # recognised, not bound
        return not any(":" in host for host in hosts)
    return "localhost" in hosts and not hosts.isdisjoint(_LOOPBACK)


def _open_machine_config(path: Path, frontend: FrontendSection, config: Config) -> Iterator[Finding]:
    pool = config.pools.get(frontend.pool or "")
    ports = {endpoint.port for endpoint in frontend.bind}
    ports |= {server.address.port for server in pool.servers.values()} if pool else set()
    if MACHINE_CONFIG_PORT not in ports:
        return
    for index, network in enumerate(frontend.allow):
        if network in _EVERYBODY:
            message = f"`{network}` allows everybody: port {MACHINE_CONFIG_PORT} serves secrets"
            yield warning((*path, "allow", index), message)
    if not frontend.allow:
        message = (
            f"port {MACHINE_CONFIG_PORT} serves machine configuration, which holds secrets: "
            "say who may connect, for example `allow: [10.0.0.0/24]`"
        )
        yield Finding(path=path, message=message, touches=((*path, "allow"),))


def _loops(path: Path, frontend: FrontendSection, config: Config) -> Iterator[Finding]:
    pool = config.pools.get(frontend.pool or "")
    for name, server in pool.servers.items() if pool else ():
        address = server.address
        index = next((at for at, bind in enumerate(frontend.bind) if _takes(bind, address)), None)
        if index is not None:
            where: Path = (*path, "bind", index)
            message = (
                f"`{address}` leads back to `{frontend.bind[index]}` of {dotted(where)}: "
                "connections would go round in a loop"
            )
            server_path: Path = ("pools", frontend.pool or "", "servers", name, "address")
            yield warning(server_path, message, where, (*path, "pool"))


def _takes(bind: Endpoint, address: Endpoint) -> bool:
    """Tell whether a bind takes connections to an address that is surely this machine's."""
    ours = _is_loopback(address.host) or address.host == bind.host
    return ours and bind.port == address.port and _overlap(bind, address)


def _is_loopback(host: str) -> bool:
    address = literal(host)
    return host == "localhost" if address is None else address.is_loopback


def _pool(name: str, pool: PoolSection) -> Iterator[Finding]:
    path: Path = ("pools", name)
    pool_type = pool.check.type if pool.check else "tcp"
    if not pool.servers:
        yield warning(path, "has no servers: every connection is refused", (*path, "servers"))
    elif not any(server.weight for server in pool.servers.values()):
        message = "all servers have weight 0: none of them takes connections"
        yield warning((*path, "servers"), message)
    if "hash_on" in pool.model_fields_set and pool.balance is not Balance.HASH:
        message = f"means nothing to `balance: {pool.balance}`, only to `hash`"
        yield warning((*path, "hash_on"), message, (*path, "balance"))
    if pool.check:
        yield from _check((*path, "check"), pool.check, kind=pool_type)
    for server_name, server in pool.servers.items():
        if server.check:
            kind = server.check.type if "type" in server.check.model_fields_set else pool_type
            yield from _check((*path, "servers", server_name, "check"), server.check, kind=kind)
    yield from _same_addresses(path, pool)


def _check(path: Path, check: CheckSection, *, kind: str) -> Iterator[Finding]:
    """Judge the keys that stand at one place, for the type that holds there."""
    given = check.model_fields_set - {"type"}
    touches = ((*path, "type"), (*path[:2], "check", "type"))
    if kind == "none" and given:
        message = "nothing is checked here: say `type`, or `check: false` alone"
        yield Finding(path=path, message=message, touches=touches)
        return
    for key in sorted(given):
        kinds = _ONLY_FOR.get(key)
        if kinds and kind not in kinds:
            right = " or ".join(f"`type: {each}`" for each in sorted(kinds))
            message = f"means nothing to `type: {kind}`: say {right}, or leave it out"
            yield Finding(path=(*path, key), message=message, spot=FindingTarget.KEY, touches=touches)


def _same_addresses(path: Path, pool: PoolSection) -> Iterator[Finding]:
    seen: dict[Endpoint, str] = {}
    for name, server in pool.servers.items():
        first = seen.setdefault(server.address, name)
        if first != name:
            yield warning(
                (*path, "servers", name, "address"),
                f"`{server.address}` is the address of `{first}` too: it gets a double share",
            )


def _unused(config: Config) -> Iterator[Finding]:
    used = {name for _, frontend in frontends(config) for name in (frontend.pool, frontend.needs)}
    used |= {track.pool for each in config.virtual_ips.values() for track in each.track.values()}
    unused = (name for name in config.pools if name not in used)
    return (warning(("pools", name), "no frontend uses this pool", *_USERS) for name in unused)


def _not_served(config: Config) -> Iterator[Finding]:
    if config.stats is not None:
        yield warning(("stats",), "this version does not serve the status page yet")
